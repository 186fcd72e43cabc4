"""Mistakes that can happen in any exercise, recognised from how the outcomes look."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import shorter


def diagnose(exercise: Exercise, failing: Sequence[Trial], forbidden: Sequence[str]) -> str:
    """One sentence on what seems to be wrong, or nothing.

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
        return "Nothing here yet: replace None." if outcomes[0].value is None else ""
    if all(outcome.failure is None and outcome.value is None for outcome in outcomes):
        return "Your function returns None: is there a `return` at the end?"
    if any(_is(outcome, "TimeLimitExceeded") for outcome in outcomes):
        return "The check stopped your code, so that you do not have to restart the kernel."
    return _same_factor(failing)


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
    return f"Every result that differs is {shorter(float(f'{first:.4g}'))} times the expected one."


def _factor(expected: object, received: object) -> float | None:
    """The constant c with received = c · expected, if there is one."""
    if not isinstance(expected, Tensor | float | int) or not isinstance(received, Tensor | float | int):
        return None
    a, b = torch.as_tensor(expected, dtype=torch.float64), torch.as_tensor(received, dtype=torch.float64)
    if (
        a.shape != b.shape
        or a.device != b.device
        or not (a.isfinite().all() and b.isfinite().all())
        or not (a * b).any()
    ):
        return None
    c = float((a * b).sum() / (a * a).sum())
    return c if torch.allclose(b, c * a, rtol=1e-5) else None
