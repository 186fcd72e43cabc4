"""The exercise on delayed scaling for FP8."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _reference(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    if any(math.isinf(amax) or amax != amax for amax in history) or all(amax == 0 for amax in history):
        return scale
    return float(Fraction(largest) / max(map(Fraction, history)) / Fraction(2) ** margin)


def _hidden(random: Random) -> list[Case]:
    fixed = [
        case("one entry", [3.5], 2.0, 448.0),
        case("one entry", [0.0], 2.0, 448.0),
        case("nothing yet", [], 16.0, 57344.0),
        case("infinities and NaN", [1.0, math.inf], 2.0, 448.0),
        case("infinities and NaN", [math.nan, 1.0, 2.0], 4.0, 448.0),
        case("infinities and NaN", [2.0, math.nan], 8.0, 448.0, 2),
        case("infinities and NaN", [math.inf, 3.0], 2.5, 57344.0),
        case("some zeros", [0.0, 0.25, 0.0], 2.0, 448.0),
        case("some zeros", [2.0, 0.0], 2.0, 57344.0, 3),
        case("the spike is oldest", [80.0, 1.0, 2.0, 1.5], 2.0, 448.0),
        case("the spike is oldest", [80.0, *[1.0] * 40], 2.0, 448.0),
        case("the spike is newest", [1.0, 2.0, 1.5, 80.0], 2.0, 57344.0),
        case("tiny", [1e-9, 3e-8], 1.0, 448.0),
        case("tiny", [3e-20, 1e-12], 1.0, 448.0),
        case("tiny", [1e-15], 1.0, 448.0),
        case("huge", [1e9, 3e8], 1.0, 448.0),
        case("huge", [1.5e308, 1e308], 1.0, 57344.0),
        case("a negative margin", [4.0], 2.0, 448.0, -1),
        case("a large margin", [4.0, 0.5], 2.0, 57344.0, 5),
    ]
    drawn = [
        case(
            "other histories",
            [
                random.uniform(1, 2),
                random.uniform(3, 9),
                *(random.uniform(0.1, 2) for _ in range(random.randint(1, 4))),
            ],
            random.uniform(1, 9),
            57344.0,
            margin,
        )
        for margin in (0, 1, 2)
    ]
    return [*fixed, *drawn]


delayed_scale = Exercise(
    "delayed_scale",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_reference,
    cases=[
        case("three steps of E4M3", [1.0, 4.0, 2.0], 7.0, 448.0),
        case("room for twice as much", [4.0, 1.0, 3.0, 2.0], 7.0, 448.0, 1),
        case("gradients, in E5M2", [0.5, 0.25], 7.0, 57344.0),
        case("nothing but zeros", [0.0, 0.0], 7.0, 448.0),
        case("an infinity", [2.0, math.inf, 1.0], 7.0, 448.0),
        case("no number", [math.nan, 1.0], 7.0, 448.0),
        case("nothing seen yet", [], 7.0, 448.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "A number x is stored as scale · x. Where should the largest one land?",
        "scale = largest / max(history): that one lands on the format's largest number. A margin m keeps 2^m of room.",
        "First look for what is no use: math.isfinite for every entry, and any(history) for one that is not 0. "
        "Python's max does not see NaN reliably.",
    ],
)


def _use(history: list[float], scale: float, amax: float, largest: float, margin: int) -> float:
    return _reference([amax] if _reference(history, -1.0, 448.0) != -1.0 else [], scale, largest, margin)


@delayed_scale.misconception("You look at the last value only. A spike of two steps ago may come back.")
def latest(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _use(history, scale, history[-1] if history else 0.0, largest, margin)


@delayed_scale.misconception("You look at the oldest value only.")
def oldest(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _use(history, scale, history[0] if history else 0.0, largest, margin)


@delayed_scale.misconception("Upside down: multiply by the scale, and the largest must land on the format's largest.")
def inverted(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    found = _reference(history, math.nan, largest, margin)
    return scale if math.isnan(found) else 1 / found


@delayed_scale.misconception("A margin leaves room, so it makes the scale smaller.")
def margin_up(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _reference(history, scale, largest, -margin)


@delayed_scale.misconception("The margin is a power of two: 1 halves, 2 quarters.")
def margin_linear(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    found = _reference(history, math.nan, largest)
    return scale if math.isnan(found) else found / (1 + abs(margin) * 2)


@delayed_scale.misconception("`largest` is that of the format, and E5M2's is 57,344. You take E4M3's for all.")
def always_448(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _reference(history, scale, 448.0, margin)


@delayed_scale.misconception("The *largest* must fit, not the average.")
def average(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _use(history, scale, sum(history) / max(len(history), 1), largest, margin)


@delayed_scale.misconception("With nothing but zeros, or nothing at all, there is no news: keep the old scale.")
def one_without_news(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    finite = all(map(math.isfinite, history))
    return 1.0 if finite and not any(history) else _reference(history, scale, largest, margin)


@delayed_scale.misconception("An infinity makes your scale 0, and everything after it becomes 0: keep the old one.")
def zero_at_infinity(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return 0.0 if math.inf in history else _reference(history, scale, largest, margin)


@delayed_scale.misconception("NaN slips through: no comparison sees it, and so Python's `max` may not.")
def nan_unseen(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    return _reference([amax for amax in history if amax == amax], scale, largest, margin)


@delayed_scale.misconception("You multiply the old scale in. It is only for when there is no news.")
def times_the_old(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    found = _reference(history, 1.0, largest, margin)
    return scale * found


@delayed_scale.variant
def with_torch(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    amax = torch.tensor([0.0, *history], dtype=torch.float64).max()  # torch's max keeps NaN
    if not amax.isfinite() or amax == 0:
        return scale
    return math.ldexp(float(largest / amax), -margin)


@delayed_scale.variant
def in_a_loop(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    amax = 0.0
    for value in history:
        if math.isnan(value) or math.isinf(value):
            return scale
        if value > amax:
            amax = value
    return math.ldexp(largest / amax, -margin) if amax else scale


@delayed_scale.variant
def sorted_by_size(history: list[float], scale: float, largest: float, margin: int = 0) -> float:
    useful = all(math.isfinite(value) for value in history) and sum(history) > 0
    if useful:
        return float(largest / (sorted(history)[-1] * 2**margin))
    return scale
