"""One case run on the learner's answer and on the reference, and the verdict on the outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import difference
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.outcome import Outcome

ALWAYS_WRONG_EXCEPTIONS = ("NotImplementedError", "RecursionError", "MemoryError", "TimeLimitExceeded", "NotPlainError")
"""Ways to fail that answer no question, even one that asks for a RuntimeError (some of these are one)."""


@dataclass(frozen=True)
class Trial:
    """A case of an exercise, whether it is hidden, and the outcomes of the learner's answer and of the reference."""

    exercise: Exercise
    case: Case
    hidden: bool
    outcome: Outcome
    expected: Outcome

    @cached_property
    def wrong(self) -> str | None:
        """What is wrong with the outcome, in one line, or None."""
        return verdict(self.exercise, self.case, self.expected, self.outcome)


def verdict(exercise: Exercise, case: Case, expected: Outcome, outcome: Outcome) -> str | None:
    """Compare an outcome of a case with the expected one: the difference in one line, or None."""
    if outcome.changed:
        return f"it changes {outcome.changed[0]} in place: work on a copy"
    if expected.failure:
        wanted = expected.failure.kind
        if outcome.failure:
            right = wanted in outcome.failure.kinds and outcome.failure.kind not in ALWAYS_WRONG_EXCEPTIONS
            return None if right else f"expected {wanted}, but it raises {outcome.failure}"
        return f"expected {wanted} to be raised, but it returns a value"
    if outcome.failure:
        return str(outcome.failure)
    right, received = exercise.seen(case, expected.value), exercise.seen(case, outcome.value)
    return difference(right, received, exercise.tolerance, reveal=not exercise.value, labels=case.expressions())
