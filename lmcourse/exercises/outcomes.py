"""The table of an exercise's outcomes: (answer, case) → outcome.

`check`, grading, a teacher's release and the proof of an exercise read it, so that its reference and each known mistake
run once on each case.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import TERM
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Answer, Exercise, Misconception
from lmcourse.exercises.outcome import REFERENCE_SECONDS, Outcome, run_case

TRANSIENT_FAILURES = ("TimeLimitExceeded", "MemoryError")
"""Failures of the reference that may depend on the machine, and so may not occur again."""

Run = Callable[[Answer, Case, float], Outcome]
"""A function that runs an answer on a case within a time limit."""


class Outcomes:
    """An exercise with all its cases, public ones first, each with True if it is hidden, and the outcomes on them.

    Args:
        run: how an answer runs; by default with `run_case`.
    """

    def __init__(self, exercise: Exercise, run: Run | None = None) -> None:
        self.exercise = exercise
        self.cases = [(case, False) for case in exercise.public] + [(case, True) for case in exercise.hidden]
        self._run = run or self._run_case
        self._table: dict[tuple[Answer | Misconception, Case], Outcome] = dict(exercise.recorded())

    def expected(self, case: Case) -> Outcome:
        """Return the reference's outcome on a case; raise CourseError if it ran out of time or memory."""
        reference = self.exercise.reference
        if self.exercise.task:
            return Outcome()  # an open task is compared with its bands
        outcome = self._once(reference, case, lambda: self._run(reference, case, REFERENCE_SECONDS))
        if outcome.failure and outcome.failure.kind in TRANSIENT_FAILURES:
            self._table.pop((reference, case), None)
            raise CourseError(
                f"The course's own answer to `{self.exercise.name}` ended with {outcome.failure}: this machine is too "
                "busy or too small to grade answers."
            )
        return outcome

    def of_mistake(self, wrong: Misconception, case: Case, seconds: float | None = None) -> Outcome:
        """Return the outcome of a known mistake on a case, within a time limit; by default the exercise's limit."""
        return self._once(wrong, case, lambda: self._run(wrong.answer, case, seconds or self.exercise.seconds))

    def _once(self, answer: Answer | Misconception, case: Case, run: Callable[[], Outcome]) -> Outcome:
        key = (answer, case)
        if key not in self._table:
            self._table[key] = run()
        return self._table[key]

    def _run_case(self, answer: Answer, case: Case, seconds: float) -> Outcome:
        return run_case(answer, case, name=self.exercise.name, seconds=seconds)


def outcomes_of(exercise: Exercise) -> Outcomes:
    """Return the outcomes of an exercise in the current term, the same object each time."""
    return _outcomes_in(TERM.get(), exercise)


@lru_cache(maxsize=256)
def _outcomes_in(term: str, exercise: Exercise) -> Outcomes:
    return Outcomes(exercise)
