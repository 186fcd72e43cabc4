"""The exercise on how often a run reads its text."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _reference(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return float(Fraction(steps) * batch * length * accumulate / tokens)


def _hidden(random: Random) -> list[Case]:
    fixed = [
        case("part of an epoch", 10, 4, 16, 1, 1_000_000),
        case("part of an epoch", 1, 2, 3, 5, 700),
        case("exactly one", 25, 4, 10, 1, 1000),
        case("no steps", 0, 4, 10, 1, 1000),
        case("accumulation", 100, 8, 64, 16, 123_457),
        case("a large model", 1_000_000, 2048, 4096, 3, 15_000_000_000_001),
    ]
    drawn = [
        case("other runs", *(random.randint(2, 99) for _ in range(4)), random.randint(10_000, 99_999)) for _ in range(3)
    ]
    return [*fixed, *drawn]


epochs = Exercise(
    "epochs",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_reference,
    cases=[
        case("a tenth of the run below", 60, 32, 128, 1, 194_606),
        case("with accumulation", 60, 8, 128, 4, 194_606),
        case("stories, not all of them", 300, 16, 64, 1, 2_000_000),
    ],
    hidden_cases=_hidden,
    hints=[
        "How many tokens does one step read?",
        "A step reads `accumulate` micro-batches of `batch` windows of `length` tokens. Divide by the text's tokens.",
    ],
)


@epochs.misconception("A window has `length` tokens, not one.")
def length_forgotten(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return steps * batch * accumulate / tokens


@epochs.misconception("A step reads `accumulate` micro-batches, not one.")
def accumulate_forgotten(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return steps * batch * length / tokens


@epochs.misconception("Accumulation makes steps larger, not smaller: a step reads `accumulate` micro-batches.")
def accumulate_divides(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return steps * batch * length / accumulate / tokens


@epochs.misconception("A micro-batch has `batch` windows, not one.")
def batch_forgotten(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return steps * length * accumulate / tokens


@epochs.misconception("Upside down: that is which share of the run one epoch takes.")
def inverse(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return tokens / max(1, steps * batch * length * accumulate)


@epochs.misconception("Part of an epoch counts, too: do not round.")
def rounded(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return steps * batch * length * accumulate // tokens


@epochs.misconception("That is what one step reads. The run has `steps` of them.")
def one_step(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return batch * length * accumulate / tokens


@epochs.variant
def in_two_lines(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    per_step = accumulate * batch * length
    return per_step * steps / tokens


@epochs.variant
def as_a_fraction(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> Fraction:
    return Fraction(steps * batch * length * accumulate, tokens)


@epochs.variant
def with_numpy(steps: int, batch: int, length: int, accumulate: int, tokens: int) -> float:
    return float(np.prod([steps, batch, length, accumulate], dtype=float)) / tokens
