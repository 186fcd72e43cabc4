"""The cases of an exercise, with the outcomes of its reference and known mistakes, computed only once."""

from __future__ import annotations

from functools import lru_cache

from lmcourse.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Answer, Exercise, Misconception
from lmcourse.exercises.outcome import REFERENCE_SECONDS, Outcome, run_case

TRANSIENT_FAILURES = ("TimeLimitExceeded", "MemoryError")
"""Failures that may depend on the machine and not on the answer, and so may not occur again."""


class Expectations:
    """An exercise with all its cases, public ones first, each with True if it is hidden; outcomes are cached."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.cases = [(case, False) for case in exercise.public] + [(case, True) for case in exercise.hidden]
        self._kept: dict[tuple[int, int], Outcome] = {}

    def expected(self, case: Case) -> Outcome:
        """Return the reference's outcome on a case; raise CourseError if it ran out of time or memory."""
        outcome = self._outcome(self.exercise.reference, case, REFERENCE_SECONDS)
        if outcome.failure and outcome.failure.kind in TRANSIENT_FAILURES:
            raise CourseError(
                f"The course's own answer to `{self.exercise.name}` ended with {outcome.failure}: this machine is too "
                "busy or too small to grade answers."
            )
        return outcome

    def given(self, wrong: Misconception, case: Case) -> Outcome:
        """Return the outcome of a known mistake in one of `cases`."""
        return self._outcome(wrong.answer, case, self.exercise.seconds)

    def _outcome(self, answer: Answer, case: Case, seconds: float) -> Outcome:
        key = (id(answer), id(case))  # ids are safe as keys, because both objects live as long as this object
        if key not in self._kept:
            outcome = run_case(answer, case, name=self.exercise.name, seconds=seconds)
            if outcome.failure and outcome.failure.kind in TRANSIENT_FAILURES:
                return outcome
            self._kept[key] = outcome
        return self._kept[key]


@lru_cache(maxsize=256)
def expectations(exercise: Exercise) -> Expectations:
    """Return the expectations of an exercise, the same object each time."""
    return Expectations(exercise)
