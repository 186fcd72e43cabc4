"""The exercise on size and compute by the definitions of Kaplan et al. (2020)."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.accounting.flop_rules import kaplan_forward, kaplan_parameters
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER
from lmcourse.models.zoo.styles import gpt_like


def _total(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    """Compute both numbers with the package's own count for a configuration of these sizes."""
    config = gpt_like(layers, d_model, 1, vocab_size=2, context=context, feed_forward={"width": d_ff}, d_head=d_attn)
    flops = kaplan_forward(config, context)
    return [kaplan_parameters(config), flops.total - flops["embed"] - flops["de-embed"]]


def _cases(random: Random) -> list[Case]:
    def sizes(d_attn: int | None = None) -> list[int]:
        d_model = 16 * random.randint(8, 99)
        head = [random.randint(2, 60), d_model, d_attn or d_model]
        return [*head, random.randint(500, 9000), random.randint(100, 5000)]

    return [
        case("attention wider or narrower than the model", 3, 10, 4, 30, 7),
        case("other models", 1, 16, 16, 24, 1),
        *(case("other models", *sizes()) for _ in range(3)),
        *(case("attention wider or narrower than the model", *sizes(64 * random.randint(1, 40))) for _ in range(3)),
    ]


kaplan_total = Exercise(
    "kaplan_total",
    points=1,
    minutes=4,
    difficulty=1,
    reference=_total,
    cases=[
        case("a model for the back of an envelope", 2, 10, 10, 40, 100),
        case("attention twice as wide as the model", 2, 10, 20, 40, 100),
        case("a single layer, a single key", 1, 3, 5, 7, 1),
        case("GPT-2 XL", 48, 1600, 1600, 6400, 1024),
    ],
    hidden_cases=_cases,
    hints=[
        "Add up the weights of one layer: three matrices to d_attn, one back, two of the feed-forward layer.",
        "Each weight takes 2 FLOPs. Scores and values take 4 · d_attn for every key that the query sees.",
    ],
    forbid=NO_COUNTER,
)


def _changed(sizes: tuple[int, ...], parameters: float = 0, flops: float = 0) -> list[int]:
    """The right answer, with this much added to each of its numbers."""
    found = _total(*sizes)
    return [round(found[0] + parameters), round(found[1] + flops)]


def _mask(sizes: tuple[int, ...]) -> int:
    layers, _, d_attn, _, context = sizes
    return 2 * layers * d_attn * context


@kaplan_total.misconception("You count all pairs of tokens. Under a causal mask a query sees half of the context.")
def all_pairs(*sizes: int) -> list[int]:
    return _changed(sizes, flops=_mask(sizes))


@kaplan_total.misconception("The exact mean is (context + 1) / 2 keys. The paper takes context / 2: leave out the 1.")
def exact_mean(*sizes: int) -> list[int]:
    return _changed(sizes, flops=_mask(sizes) / sizes[4])


@kaplan_total.misconception(
    "You count one product per pair. A score takes 2 · d_attn FLOPs, and its product with a value takes as many."
)
def scores_without_values(*sizes: int) -> list[int]:
    return _changed(sizes, flops=-_mask(sizes) / 2)


@kaplan_total.misconception("You leave out scores and values. They have no weights, but they take FLOPs.")
def no_pairs(*sizes: int) -> list[int]:
    return _changed(sizes, flops=-_mask(sizes))


@kaplan_total.misconception("You count the pairs of a whole text. A token is one query: it meets context / 2 keys.")
def pairs_of_a_text(*sizes: int) -> list[int]:
    return _changed(sizes, flops=_mask(sizes) * (sizes[4] - 1))


@kaplan_total.misconception("You count scores and values of one layer. Every layer has them.")
def pairs_of_one_layer(*sizes: int) -> list[int]:
    return _changed(sizes, flops=_mask(sizes) * (1 / sizes[0] - 1))


@kaplan_total.misconception("You count one layer.")
def one_layer(*sizes: int) -> list[int]:
    return _total(1, *sizes[1:])


@kaplan_total.misconception("Attention has four matrices: queries, keys, values and output. You count fewer.")
def one_of_three(layers: int, d_model: int, d_attn: int, *rest: int) -> list[int]:
    missing = 2 * layers * d_model * d_attn
    return _changed((layers, d_model, d_attn, *rest), -missing, -2 * missing)


@kaplan_total.misconception(
    "One matrix of attention is missing, perhaps the last. Three go from d_model to d_attn, and one goes back."
)
def no_output(layers: int, d_model: int, d_attn: int, *rest: int) -> list[int]:
    missing = layers * d_model * d_attn
    return _changed((layers, d_model, d_attn, *rest), -missing, -2 * missing)


@kaplan_total.misconception("You count one matrix of the feed-forward layer. It has two, to d_ff and back.")
def one_of_two(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    missing = layers * d_model * d_ff
    return _changed((layers, d_model, d_attn, d_ff, context), -missing, -2 * missing)


@kaplan_total.misconception("Your matrices of attention are d_model × d_model. Their other side is d_attn.")
def square_matrices(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    more = 4 * layers * d_model * (d_model - d_attn)
    return _changed((layers, d_model, d_attn, d_ff, context), more, 2 * more)


@kaplan_total.misconception(
    "You count one FLOP per parameter. Each weight takes a multiplication and an addition: 2 FLOPs per parameter and "
    "token."
)
def a_flop_per_weight(*sizes: int) -> list[int]:
    return _changed(sizes, flops=-_total(*sizes)[0])


@kaplan_total.misconception("That is training, three times as much. The paper's number is the forward pass.")
def training(*sizes: int) -> list[int]:
    return _changed(sizes, flops=2 * _total(*sizes)[1])


@kaplan_total.misconception("You return the FLOPs of a whole text. Divide by `context` for one token.")
def flops_of_a_text(*sizes: int) -> list[int]:
    return _changed(sizes, flops=(sizes[4] - 1) * _total(*sizes)[1])


@kaplan_total.misconception(
    "Your second number is 6 · N, the rule for training. Return the forward pass, including its pairs."
)
def six_n(*sizes: int) -> list[int]:
    parameters, _ = _total(*sizes)
    return [parameters, 6 * parameters]


@kaplan_total.misconception("You round context / 2 down. Half of an odd context is not a whole number: multiply first.")
def context_rounded_down(*sizes: int) -> list[int]:
    layers, _, d_attn, _, context = sizes
    return _changed(sizes, flops=4 * layers * d_attn * (context // 2) - _mask(sizes))


@kaplan_total.misconception("Your matrices of attention are d_attn × d_attn. One of their sides is d_model.")
def squares_of_attention(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    more = 4 * layers * d_attn * (d_attn - d_model)
    return _changed((layers, d_model, d_attn, d_ff, context), more, 2 * more)


@kaplan_total.misconception("Your matrix back is d_model × d_model. It begins at d_attn.")
def square_output(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    more = layers * d_model * (d_model - d_attn)
    return _changed((layers, d_model, d_attn, d_ff, context), more, 2 * more)


@kaplan_total.misconception(
    "You count 12 · d_model² per layer. That is right only if d_attn = d_model and d_ff = 4 · d_model."
)
def twelve_squares(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    parameters = 12 * layers * d_model**2
    return [parameters, 2 * parameters + 2 * layers * context * d_attn]


@kaplan_total.misconception("A score is a dot product of d_attn numbers, all heads together. Yours has d_model.")
def pairs_of_the_model(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    return _changed((layers, d_model, d_attn, d_ff, context), flops=2 * layers * context * (d_model - d_attn))


@kaplan_total.variant
def the_papers_formula(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> tuple[int, int]:
    N = 2 * d_model * layers * (2 * d_attn + d_ff)
    return N, 2 * N + 2 * layers * context * d_attn


@kaplan_total.variant
def layer_after_layer(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[float]:
    parameters, flops = 0, 0.0
    for _ in range(layers):
        for inputs, outputs in [(d_model, d_attn)] * 3 + [(d_attn, d_model), (d_model, d_ff), (d_ff, d_model)]:
            parameters += inputs * outputs
            flops += 2 * inputs * outputs
        flops += 2 * (2 * d_attn) * (context / 2)
    return [parameters, flops]


@kaplan_total.variant
def with_an_array(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[np.int64]:
    weights = layers * d_model * np.array([3 * d_attn, d_attn, 2 * d_ff], dtype=np.int64)
    return [weights.sum(), 2 * weights.sum() + np.int64(4 * layers * d_attn * context // 2)]
