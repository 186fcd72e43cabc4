"""Exercises on the size of a feed-forward layer: how many parameters, and how wide a gated one may be."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from random import Random

import numpy as np
import torch
from torch import nn

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.nn.feed_forward import FeedForwardConfig, build_feed_forward

# matched_d_ff ----------------------------------------------------------------------------------------------------


def _matched(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    plain = 2 * d_model * (expansion * d_model)
    width = multiple
    while 3 * d_model * width < plain:
        width += multiple
    return width


def _matched_cases(random: Random) -> list[Case]:
    def width(expansion: int = 4, multiple: int = 1) -> int:
        """One whose exact match lies in the lower half between two multiples: up, down and nearest differ."""
        while True:
            d_model = random.randint(100, 9000)
            if 0 < 2 * (2 * expansion * d_model % (3 * multiple)) < 3 * multiple:
                return d_model

    return [
        case("the smallest", 1),
        case("less than a multiple", 8, multiple=256),
        case("nothing to round", 192, multiple=64),
        case("other expansions", 1000, expansion=1),
        case("other multiples", 1000, multiple=96),
        *(case("other widths", width()) for _ in range(2)),
        *(case("other expansions", width(expansion), expansion=expansion) for expansion in (2, 5)),
        *(case("other multiples", width(4, multiple), multiple=multiple) for multiple in (32, 64, 128)),
    ]


matched_d_ff = Exercise(
    "matched_d_ff",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_matched,
    cases=[
        case("d = 12", 12),
        case("d = 4096", 4096),
        case("LLaMA-7B: d = 4096, multiples of 256", 4096, multiple=256),
        case("LLaMA-13B: d = 5120, multiples of 256", 5120, multiple=256),
        case("nothing to round: d = 3072", 3072, multiple=256),
        case("an expansion of 6", 1024, expansion=6, multiple=64),
    ],
    hidden_cases=_matched_cases,
    hints=[
        "Set 3·d·w equal to 2·d·(expansion·d) and solve for w.",
        "w = 2·expansion·d / 3. Round that up to a multiple, in one go.",
        "With whole numbers, ceil(a / b) is -(-a // b). Here a = 2·expansion·d and b = 3·multiple.",
    ],
)


@matched_d_ff.misconception(
    "That is smaller *by* two thirds, as in the notes. It should be smaller by a *factor* of two thirds."
)
def smaller_by_two_thirds(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.ceil(expansion * d_model / (3 * multiple)) * multiple


@matched_d_ff.misconception("You kept the width. With three matrices instead of two the layer is half as large again.")
def same_width(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.ceil(expansion * d_model / multiple) * multiple


@matched_d_ff.misconception("You multiplied by 3/2. The third matrix makes each of them narrower, not wider.")
def wider(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.ceil(3 * expansion * d_model / (2 * multiple)) * multiple


@matched_d_ff.misconception("You round to the nearest multiple. LLaMA's recipe rounds up.")
def to_the_nearest(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.floor(2 * expansion * d_model / (3 * multiple) + 0.5) * multiple


@matched_d_ff.misconception("You round down: the gated layer gets fewer parameters than the plain one.")
def rounded_down(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return 2 * expansion * d_model // (3 * multiple) * multiple


@matched_d_ff.misconception("A width that is a multiple already should stay; yours goes on to the next one.")
def always_the_next(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return (2 * expansion * d_model // (3 * multiple) + 1) * multiple


@matched_d_ff.misconception("The expansion is not used: your rule is 8/3 of d whatever was asked for.")
def always_eight_thirds(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return _matched(d_model, 4, multiple)


@matched_d_ff.variant
def rounded_up_by_ceil(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.ceil(2 * expansion * d_model / 3 / multiple) * multiple


@matched_d_ff.variant
def first_that_is_enough(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return next(w for w in itertools.count(multiple, multiple) if 3 * w >= 2 * expansion * d_model)


@matched_d_ff.variant
def by_the_remainder(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    whole, rest = divmod(2 * expansion * d_model, 3)
    width = whole + (rest > 0)
    return width + (-width) % multiple


@matched_d_ff.variant
def with_fractions(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    blocks = Fraction(2, 3) * expansion * d_model / multiple
    return multiple * (blocks.numerator // blocks.denominator + (blocks.denominator > 1))


@matched_d_ff.variant
def with_numpy(d_model: int, expansion: int = 4, multiple: int = 1) -> float:
    width: float = np.ceil(8 / 3 * d_model * (expansion / 4) / multiple) * multiple
    return width


# ffn_parameters --------------------------------------------------------------------------------------------------


def _parameters(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    with torch.device("meta"):
        layer = build_feed_forward(FeedForwardConfig(d_ff, gated=gated, bias=bias), d_model)
    return sum(parameter.numel() for parameter in layer.parameters())


def _parameter_cases(random: Random) -> list[Case]:
    kinds = [(gated, bias) for gated in (False, True) for bias in (False, True)]
    return [
        case("one by one", 1, 1, gated=True, bias=True),
        case("gated and four times as wide", 16, 64, gated=True, bias=True),
        case("narrower than the model", 512, 100, gated=True, bias=True),
        case("narrower than the model", 512, 100, bias=True),
        *(
            case("other sizes", random.randint(10, 5000), random.randint(10, 20_000), gated=gated, bias=bias)
            for gated, bias in kinds
        ),
    ]


ffn_parameters = Exercise(
    "ffn_parameters",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_parameters,
    cases=[
        case("d = 2, d_ff = 3", 2, 3),
        case("the same with biases", 2, 3, bias=True),
        case("the same, gated", 2, 3, gated=True),
        case("gated with biases", 2, 3, gated=True, bias=True),
        case("GPT-3", 12_288, 49_152, bias=True),
        case("Llama 3 405B", 16_384, 53_248, gated=True),
    ],
    hidden_cases=_parameter_cases,
    hints=[
        "Up is (d_model, d_ff) and down is (d_ff, d_model). A gate is one more of the first shape.",
        "A bias has as many numbers as its matrix has outputs: d_ff for up and gate, d_model for down.",
    ],
)


@ffn_parameters.misconception("A gated layer has three matrices: gate, value and down. Yours has two.")
def gate_forgotten(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return _parameters(d_model, d_ff, False, bias)


@ffn_parameters.misconception("The biases are not counted.")
def biases_forgotten(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return _parameters(d_model, d_ff, gated)


@ffn_parameters.misconception("The gate's own bias is missing: gate and value have one each.")
def one_bias_for_gate_and_value(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return _parameters(d_model, d_ff, gated) + bias * (d_ff + d_model)


@ffn_parameters.misconception("The bias of the last matrix is missing: it has d_model numbers.")
def no_bias_at_the_end(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return _parameters(d_model, d_ff, gated, bias) - bias * d_model


@ffn_parameters.misconception("d_ff is not used: 8·d² holds for a plain layer with d_ff = 4·d only.")
def eight_d_squared(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return 8 * d_model**2 + bias * 5 * d_model


@ffn_parameters.misconception("That is twice as many: 2·inputs·outputs are the FLOPs of a token, not the parameters.")
def flops_of_a_token(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    return 2 * _parameters(d_model, d_ff, gated, bias)


@ffn_parameters.variant
def layer_by_layer(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    with torch.device("meta"):
        layers = [nn.Linear(d_model, d_ff, bias=bias) for _ in range(1 + gated)]
        layers.append(nn.Linear(d_ff, d_model, bias=bias))
    return sum(parameter.numel() for layer in layers for parameter in layer.parameters())


@ffn_parameters.variant
def four_formulas(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    if gated and bias:
        return 3 * d_model * d_ff + 2 * d_ff + d_model
    if gated:
        return 3 * d_model * d_ff
    if bias:
        return 2 * d_model * d_ff + d_ff + d_model
    return 2 * d_model * d_ff


@ffn_parameters.variant
def matrices_with_a_row_of_ones(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    shapes = [(d_model, d_ff)] * (2 if gated else 1) + [(d_ff, d_model)]
    return sum((rows + int(bias)) * columns for rows, columns in shapes)
