"""Detectors for an exercise whose answer is a value. None of them may tell the right one."""

from __future__ import annotations

import math

from lmcourse.exercises.trial import Trial

SLIPS = (
    (lambda ratio: math.isclose(ratio, -1), "Only the sign is wrong."),
    (lambda ratio: _is(ratio, 8), "Bits and bytes: it is off by the factor 8 between them."),
    (
        lambda ratio: any(_is(ratio, 1.024**power) for power in (1, 2, 3, 4)),
        "Decimal and binary units: it is off as far as powers of 1,000 are from powers of 1,024.",
    ),
    (lambda ratio: _is_power_of_ten(ratio), "Only a power of ten is wrong: often a unit."),
    (lambda ratio: _is(ratio, 2), "It is off by a factor of two."),
    (lambda ratio: abs(ratio - 1) < 5e-3, "Close, within half a per cent: often something is rounded on the way."),
)  # fmt: skip
"""What the ratio of the given value to the right one may be, and what is said of it."""


def nothing_yet(trial: Trial) -> str:
    """That there is no value yet."""
    gave_none = trial.outcome.failure is None and trial.outcome.value is None
    return "Nothing here yet: replace None." if gave_none else ""


def value_slip(trial: Trial) -> str:
    """A small slip between the value given and the right one."""
    expected, received = trial.expected.value, trial.outcome.value
    if type(expected) not in (int, float) or type(received) not in (int, float):
        return ""
    try:
        ratio = received / expected
    except (OverflowError, ZeroDivisionError):
        return ""
    return next((sentence for holds, sentence in SLIPS if math.isfinite(ratio) and holds(ratio)), "")


def _is(ratio: float, factor: float) -> bool:
    return any(math.isclose(ratio, each, rel_tol=1e-6) for each in (factor, 1 / factor))


def _is_power_of_ten(ratio: float) -> bool:
    return ratio > 0 and not _is(ratio, 1) and _is(ratio, 10.0 ** round(math.log10(ratio)))
