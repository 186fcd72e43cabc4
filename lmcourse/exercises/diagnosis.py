"""Mistakes that can happen in any exercise, recognised from how the outcomes look."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import format_number


def diagnose(exercise: Exercise, failing: Sequence[Trial], forbidden: Sequence[str]) -> str:
    """A sentence on a mistake that these outcomes suggest, or an empty text.

    Args:
        exercise: what was asked.
        failing: the public trials that failed.
        forbidden: the ruled-out names that the answer uses.
    """
    if forbidden:
        return f"This exercise asks you to do without `{forbidden[0].lstrip('.')}`, so it earns no points yet."
    if not failing:
        return ""
    outcomes = [trial.outcome for trial in failing]
    if all(_is(outcome, "NotImplementedError") for outcome in outcomes):
        return "Nothing here yet: replace the line that raises NotImplementedError."
    if exercise.value:
        return "Nothing here yet: replace None." if _gave_none(outcomes[0]) else ""
    if all(map(_gave_none, outcomes)):
        return "Your function returns None: is there a `return` at the end?"
    if any(_is(outcome, "TimeLimitExceeded") for outcome in outcomes):
        return "The check stopped your code, so that you do not have to restart the kernel. Is there an endless loop?"
    for outcome in outcomes:
        if outcome.failure and outcome.failure.cause:
            return outcome.failure.cause
    return _same_factor(failing)


def _gave_none(outcome: Outcome) -> bool:
    return outcome.failure is None and outcome.value is None


def _is(outcome: Outcome, kind: str) -> bool:
    return outcome.failure is not None and outcome.failure.kind == kind


def _same_factor(failing: Sequence[Trial]) -> str:
    """Results that are off by one constant everywhere usually miss a factor or a sign."""
    factors = [_factor(trial.expected.value, trial.outcome.value) for trial in failing]
    first = factors[0]
    if len(factors) < 2 or first is None or any(f is None or not math.isclose(f, first, rel_tol=1e-4) for f in factors):
        return ""
    if math.isclose(first, -1.0, rel_tol=1e-6):
        return "Every result is right except for its sign."
    return f"Every result that differs is {format_number(float(f'{first:.4g}'))} times the expected one."


def _factor(expected: object, received: object) -> float | None:
    """The constant c with received = c · expected, if there is one."""
    a, b = _numbers(expected), _numbers(received)
    if a is None or b is None or a.shape != b.shape or a.device != b.device:
        return None
    if not (a.isfinite().all() and b.isfinite().all()) or not (a * b).any():
        return None
    c = float((a * b).sum() / (a * a).sum())
    return c if torch.allclose(b, c * a, rtol=1e-5) else None


def _numbers(value: object) -> Tensor | None:
    if isinstance(value, Tensor) and not value.is_complex():
        return value.double()
    if isinstance(value, float | int) and abs(value) < 1e300:
        return torch.tensor(float(value), dtype=torch.float64)
    return None
