"""The exercise on attention's share of the work."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.chapters.flops.exercises.counted import product
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER


def _share(length: int, d_model: int, expansion: int = 4) -> float:
    """The fraction of a layer's FLOPs in scores and values, with each product counted by torch."""
    d_ff = expansion * d_model
    pairs = product((length, d_model), (d_model, length)) + product((length, length), (length, d_model))
    square = product((length, d_model), (d_model, d_model))
    wide = product((length, d_model), (d_model, d_ff)) + product((length, d_ff), (d_ff, d_model))
    return pairs / (pairs + 4 * square + wide)


def _cases(random: Random) -> list[Case]:
    def size() -> int:
        return random.randint(10, 20_000)

    return [
        case("a single token", 1, 8),
        case("a single token", 1, 1, expansion=1),
        case("other feed-forward layers", 7, 3, expansion=2),
        *(case("other lengths and widths", size(), size()) for _ in range(4)),
        *(case("other feed-forward layers", size(), size(), expansion) for expansion in (2, 3, 8)),
        case("a very long text", random.randint(10**6, 10**7), size()),
    ]


attention_share = Exercise(
    "attention_share",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_share,
    cases=[
        case("as long as wide", 1024, 1024),
        case("GPT-2 small with its 1024 tokens", 1024, 768),
        case("six times as long as wide", 4608, 768),
        case("a wider feed-forward layer", 1000, 1000, expansion=8),
        case("a short text in a wide model", 128, 12_288),
    ],
    hidden_cases=_cases,
    hints=[
        "Take your table of section 4, one layer, without the head. Which two rows are scores and values?",
        "Divide by everything, not by the rest. Most letters cancel.",
        "Per token: 4·S·D for scores and values, and 8·D² + 4·E·D² for all else.",
    ],
    forbid=NO_COUNTER,
)


@attention_share.variant
def pairs_over_everything(length: int, d_model: int, expansion: int = 4) -> float:
    pairs = 4 * length * d_model
    projections = 8 * d_model**2
    feed_forward = 4 * expansion * d_model**2
    return pairs / (pairs + projections + feed_forward)


attention_share.slips(
    pairs_over_everything,
    {
        "(pairs + projections → (projections": "You divide attention by the rest. Divide it by the total.",
        "return pairs / → return 1 - pairs /": "That is the share of the rest: one minus it goes into scores and "
        "values.",
        "4 * length → 2 * length": "You count half of the pairs, as under a causal mask. Here all pairs count.",
        "return pairs / → return (pairs + projections) /": "You count the projections to q, k, v and out as "
        "attention. They are linear in the length. Count only scores and values.",
        " + projections → ": "You leave out the projections of attention: four matrices of D² are part of the rest.",
        "8 * d_model → 6 * d_model": "You count three projections of D² in the rest. There are four: q, k, v and out.",
        " + feed_forward → ": "The feed-forward layer is missing in the total.",
        "4 * expansion → 2 * expansion": "You count one matrix of the feed-forward layer. It has two, up and down.",
        "4 * expansion → 4 * 4": "Your feed-forward layer is always 4·D wide. It is `expansion` · D.",
        "pairs = → length, d_model = d_model, length\n    pairs =": "You swapped the text length and the width: "
        "longer texts raise the share.",
        "return pairs / → return 100 * pairs /": "You return a percentage. A share is between 0 and 1.",
        "return pairs / → return pairs / 2 /": "Your numerator holds the scores alone. The values take as much.",
    },
)


@attention_share.variant
def exactly(length: int, d_model: int, expansion: int = 4) -> Fraction:
    pairs = 2 * length * length * d_model * 2
    weights = 2 * length * (4 * d_model**2 + 2 * expansion * d_model**2)
    return Fraction(pairs, pairs + weights)


@attention_share.variant
def one_over(length: int, d_model: int, expansion: int = 4) -> float:
    return 1 / (1 + (2 + expansion) * d_model / length)


@attention_share.variant
def one_minus_the_rest(length: int, d_model: int, expansion: int = 4) -> np.float64:
    S, D, E = map(np.float64, (length, d_model, expansion))
    rest = (8 + 4 * E) * D**2
    return np.float64(1 - rest / (rest + 4 * S * D))
