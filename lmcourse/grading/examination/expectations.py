"""Cases of an exercise and the reference's outcomes, computed once for all submissions of a grading run."""

from __future__ import annotations

from functools import lru_cache

from lmcourse.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Answer, Exercise, Misconception
from lmcourse.exercises.guesses import RememberedGuesses
from lmcourse.exercises.judge import agree_on
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.trial import Trial

REFERENCE_SECONDS = 60.0
"""Time limit of the right answer to a case, which is not in a hurry."""

TRANSIENT_FAILURES = ("TimeLimitExceeded", "MemoryError")
"""Failures that say more about the machine than about the answer: another time it may succeed."""


class Expectations:
    """An exercise with the hidden cases of one seed.

    An outcome is worked out when it is first asked for, and kept. Whoever is given one must not change it.

    Attributes:
        cases: the cases in the order of a report, public ones first, and whether each is hidden.
        count_guesses: what one fixed answer to all of some cases would earn; for `judge`.
    """

    def __init__(self, exercise: Exercise, seed: int) -> None:
        self.exercise = exercise
        self.cases = [(case, False) for case in exercise.cases]
        self.cases += [(case, True) for case in exercise.hidden(seed)]
        self.count_guesses = RememberedGuesses()
        self._kept: dict[tuple[int, int], Outcome] = {}

    def expected(self, case: Case) -> Outcome:
        """The outcome of the reference on a case.

        Args:
            case: one of `cases`.

        Raises:
            CourseError: it ran out of time or memory.
        """
        outcome = self._outcome(self.exercise.reference, case, REFERENCE_SECONDS)
        if outcome.failure and outcome.failure.kind in TRANSIENT_FAILURES:
            raise CourseError(
                f"The course's own answer to `{self.exercise.name}` ended with {outcome.failure}: this machine is too "
                "busy or too small to grade it."
            )
        return outcome

    def agrees(self, wrong: Misconception, trial: Trial) -> bool:
        """Whether a known wrong answer gives what the learner's gave.

        Args:
            wrong: one of the exercise's misconceptions.
            trial: of one of `cases`.
        """
        guess = self._outcome(wrong.answer, trial.case, self.exercise.seconds)
        return agree_on(trial, guess)

    def _outcome(self, answer: Answer, case: Case, seconds: float) -> Outcome:
        key = (id(answer), id(case))  # both live as long as this object does
        if key not in self._kept:
            outcome = run_case(answer, case, name=self.exercise.name, seconds=seconds)
            if outcome.failure and outcome.failure.kind in TRANSIENT_FAILURES:
                return outcome
            self._kept[key] = outcome
        return self._kept[key]


@lru_cache(maxsize=128)
def expectations(exercise: Exercise, seed: int) -> Expectations:
    """The expectations of an exercise under a seed; the same object as long as it is among the last 128 asked for."""
    return Expectations(exercise, seed)
