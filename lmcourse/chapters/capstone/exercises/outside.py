"""The exercise on which forecasts were wrong."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Numbers = dict[str, float]


def _distance(predicted: float, measured: float, band: float) -> float:
    """How far outside, in bands: 1 at its edge."""
    error, width = abs(measured - predicted), abs(predicted) * band
    if error == 0:
        return 0.0
    return error / width if width else math.inf


def _outside(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    far = {name: _distance(predicted[name], measured[name], bands[name]) for name in predicted}
    return sorted((name for name in far if far[name] > 1), key=lambda name: (-far[name], name))


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("at the edge", {"u": 4.0, "v": 4.0}, {"u": 5.0, "v": 3.0}, {"u": 0.25, "v": 0.25}),
        case("just outside", {"u": 4.0, "v": 4.0}, {"u": 5.001, "v": 2.999}, {"u": 0.25, "v": 0.25}),
        case(
            "bands of 0", {"z": 3.0, "a": 5.0, "m": 8.0}, {"z": 3.5, "a": 5.5, "m": 8.0}, {"z": 0.0, "a": 0.0, "m": 0.0}
        ),
        case(
            "a forecast of 0",
            {"x": 0.0, "y": 0.0, "k": 1.0},
            {"x": 0.0, "y": 0.1, "k": 9.0},
            {"x": 0.5, "y": 0.5, "k": 0.5},
        ),
        case("a negative forecast", {"p": -4.0, "q": -4.0}, {"p": -5.0, "q": -6.0}, {"p": 0.25, "q": 0.25}),
        case(
            "as far as each other",
            {"b": 2.0, "c": 8.0, "a": 4.0},
            {"b": 4.0, "c": 16.0, "a": 0.0},
            {"b": 0.5, "c": 0.5, "a": 0.5},
        ),
        case("nothing predicted", {}, {}, {}),
        case(
            "narrow and wide bands",
            {"n": 8.0, "w": 8.0, "x": 8.0},
            {"n": 9.0, "w": 15.0, "x": 12.0},
            {"n": 0.03125, "w": 0.5, "x": 0.25},
        ),
        case("measured more than predicted", {"n": 2.0}, {"n": 3.0, "extra": 7.0}, {"n": 0.125, "extra": 0.0}),
    ]
    for _ in range(2):
        names, ratios, shares = random.sample("stuvwxyz", 5), (0.98, 1.5, 0.4, 2.5, 1.03), (0.1, 0.3, 0.1, 0.2, 0.1)
        predicted = {name: random.uniform(60, 90) for name in names}
        measured = {name: predicted[name] * ratio for name, ratio in zip(names, ratios, strict=True)}
        cases.append(case("other forecasts", predicted, measured, dict(zip(names, shares, strict=True))))
    return cases


outside = Exercise(
    "outside",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_outside,
    cases=[
        case(
            "loss and seconds",
            {"loss": 0.3, "seconds": 20.0},
            {"loss": 0.33, "seconds": 24.0},
            {"loss": 0.04, "seconds": 0.3},
        ),
        case("too small is wrong too", {"u": 10.0, "v": 10.0}, {"u": 4.0, "v": 17.0}, {"u": 0.5, "v": 0.5}),
        case(
            "the worst first",
            {"a": 2.0, "b": 10.0, "c": 100.0},
            {"a": 3.0, "b": 40.0, "c": 200.0},
            {"a": 0.1, "b": 0.1, "c": 0.75},
        ),
        case(
            "exact ones",
            {"flops": 7.0, "bytes": 9.0, "loss": 1.0},
            {"flops": 7.0, "bytes": 10.0, "loss": 3.0},
            {"flops": 0.0, "bytes": 0.0, "loss": 0.5},
        ),
        case("as bad as each other", {"z": 2.0, "a": 4.0}, {"z": 4.0, "a": 8.0}, {"z": 0.25, "a": 0.25}),
        case("around the forecast", {"u": 4.0, "v": 4.0}, {"u": 5.5, "v": 2.9}, {"u": 0.3, "v": 0.3}),
    ],
    hidden_cases=_hidden,
    hints=[
        "How far is it from the forecast, and how far may it be? The band is a share of what was predicted.",
        "Distance over width: above 1 it is outside. With a width of 0, anything but equality is infinitely far.",
        "sorted(names, key=lambda name: (-far[name], name)) puts the worst first and equal ones by name.",
    ],
)


outside.equivalent_mutant(
    "error, width = (abs(measured[name] - forecast), bands[name] * abs(forecast)) → error, width = "
    "(abs(forecast - measured[name]), bands[name] * abs(forecast))",
    "a distance is the same from either end",
)


def _by(predicted: Numbers, far: Numbers) -> list[str]:
    return sorted((name for name in predicted if far[name] > 1), key=lambda name: (-far[name], name))


@outside.misconception("You take the band for the distance itself. It is a share of what was predicted.")
def absolute(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    far = {n: _distance(1.0, 1 + measured[n] - p, bands[n]) for n, p in predicted.items()}
    return _by(predicted, far)


@outside.misconception("You divide by what was measured. The band was promised around what you predicted.")
def other_denominator(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    return _by(predicted, {n: _distance(measured[n], p, bands[n]) for n, p in predicted.items()})


@outside.misconception("You look at what came out too large only. Too small is outside as well.")
def one_sided(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    right = _outside(predicted, measured, bands)
    return [name for name in right if measured[name] > predicted[name]]


@outside.misconception("You list what was right.")
def inside(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    wrong = _outside(predicted, measured, bands)
    return sorted(name for name in predicted if name not in wrong)


@outside.misconception("You list them as they come. The worst first: that is where to begin.")
def unsorted(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    wrong = _outside(predicted, measured, bands)
    return [name for name in predicted if name in wrong]


@outside.misconception("A band of 0 divides by zero in your code. It asks for equality.")
def division_by_zero(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    return _by(predicted, {n: abs(measured[n] - p) / (p * bands[n]) for n, p in predicted.items()})


@outside.misconception(
    "You sort by the relative error. One that promised 4 % and missed by 10 % is worse than "
    "one that promised 30 % and missed by 40 %."
)
def sorted_by_error(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    wrong = _outside(predicted, measured, bands)
    return sorted(wrong, key=lambda n: (-_distance(predicted[n], measured[n], 1.0), n))


@outside.misconception(
    "Those that are equally far off come from the end of the alphabet: `reverse=True` turns the names round as well."
)
def names_reversed(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    wrong = _outside(predicted, measured, bands)
    return sorted(wrong, key=lambda n: (_distance(predicted[n], measured[n], bands[n]), n), reverse=True)


@outside.misconception("You list the worst last.")
def worst_last(predicted: Numbers, measured: Numbers, bands: Numbers) -> list[str]:
    return _outside(predicted, measured, bands)[::-1]


@outside.variant
def in_a_loop(predicted: dict[str, float], measured: dict[str, float], bands: dict[str, float]) -> list[str]:
    found = []
    for name in predicted:
        width, error = bands[name] * abs(predicted[name]), abs(predicted[name] - measured[name])
        if error > width:
            found.append((-error / width if width > 0 else -math.inf, name))
    found.sort()
    return [name for _, name in found]


@outside.variant
def sorted_twice(predicted: dict[str, float], measured: dict[str, float], bands: dict[str, float]) -> list[str]:
    def far(name: str) -> float:
        error = abs(measured[name] - predicted[name])
        try:
            return error / abs(predicted[name] * bands[name])
        except ZeroDivisionError:
            return math.inf if error else 0.0

    by_name = sorted(predicted)
    return [name for name in sorted(by_name, key=far, reverse=True) if far(name) > 1]


@outside.variant
def comparing_bounds(predicted: dict[str, float], measured: dict[str, float], bands: dict[str, float]) -> list[str]:
    wrong = {}
    for name, forecast in predicted.items():
        room = abs(forecast) * bands[name]
        if not forecast - room <= measured[name] <= forecast + room:
            gap = abs(measured[name] - forecast)
            wrong[name] = gap / room if room else float("inf")
    return sorted(wrong, key=lambda name: (1 / wrong[name] if wrong[name] < math.inf else 0.0, name))
