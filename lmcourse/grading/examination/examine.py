"""Grading a notebook from outside: its process answers, this one knows what is right."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome, evaluate
from lmcourse.exercises.report import Report
from lmcourse.exercises.trial import Trial
from lmcourse.grading.examination.examinee import Examinee, LostError, Patience
from lmcourse.grading.examination.rules import forbidden_in_text
from lmcourse.grading.examination.texts import python_of

REFERENCE_SECONDS = 60.0
"""For the right answer to a case, which is not in a hurry."""


def examine(
    sources: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int,
    jail: Sequence[str] = (),
    patience: Patience | None = None,
) -> dict[str, Report]:
    """The reports of a grade, by exercise, for a notebook that is not trusted.

    For honest work they are those of `check_exercise(hidden=True)`.

    Args:
        sources: the code cells of the notebook, in order.
        exercises: what they answer.
        seed: of the hidden cases; the notebook never gets to know it.
        jail: a command to run the notebook's process in, without which it has the rights of this one.
        patience: how long the notebook may take.

    Raises:
        CourseError: the jail does not let Python start.
    """
    examination = _Examination(sources, seed, tuple(jail), patience or Patience())
    try:
        return {exercise.name: examination.report(exercise) for exercise in exercises}
    finally:
        examination.close()


class _Examination:
    """One notebook. A process that is lost is replaced for the next exercise: one bad answer must not cost all."""

    def __init__(self, sources: Sequence[str], seed: int, jail: tuple[str, ...], patience: Patience) -> None:
        self.cells = [(place, text) for place, source in enumerate(sources, 1) if (text := python_of(source))]
        self.seed = seed
        self.jail = jail
        self.patience = patience
        self.deadline = monotonic() + patience.total
        self.ended = ""
        self.examinee: Examinee | None = None

    def close(self) -> None:
        if self.examinee:
            self.examinee.close()
        self.examinee = None

    def report(self, exercise: Exercise) -> Report:
        cases = [(case, False) for case in exercise.cases]
        cases += [(case, True) for case in exercise.hidden(self.seed)]
        outcomes, lost = self._outcomes(exercise, [case for case, _ in cases])
        trials = [
            Trial(case, hidden, outcome, _expected(exercise, case))
            for (case, hidden), outcome in zip(cases, outcomes, strict=True)
        ]
        texts = [text for _, text in self.cells]
        report = judge(exercise, trials, hidden=True, forbidden=forbidden_in_text(texts, exercise.name, exercise.rules))
        missing = all(outcome.failure and outcome.failure.kind == "NameError" for outcome in outcomes)
        if self.ended and (missing or not (report.passed or report.diagnosis)):
            lost = lost or self.ended
        return replace(report, diagnosis=lost) if lost else report

    def _outcomes(self, exercise: Exercise, cases: Sequence[Case]) -> tuple[list[Outcome], str]:
        """What came of each case, and the reason if the process was lost on the way.

        The cases are put in an order that depends on the seed, so that nothing tells public from hidden ones. After
        the first that runs out of time the others count as out of time too, unrun.
        """
        outcomes: dict[int, Outcome] = {}
        rest = Outcome()
        lost = ""
        order = random.Random(f"{exercise.name}/{self.seed}/order").sample(range(len(cases)), len(cases))
        try:
            examinee = self._ready()
            for place in order:
                rest = outcomes[place] = examinee.evaluate(exercise, cases[place])
                if rest.failure and rest.failure.kind == "TimeLimitExceeded":
                    break
        except LostError as error:
            self.close()
            rest = Outcome(failure=error.failure)
            lost = f"While `{exercise.name}` was checked: {error}."
        return [outcomes.get(place, rest) for place in range(len(cases))], lost

    def _ready(self) -> Examinee:
        """A process in which the cells have run; up to the one that ends every process, if there is one."""
        while self.examinee is None:
            examinee = Examinee(self.jail, self.patience, self.deadline)
            self.examinee = examinee.__enter__()
            self._run_cells(examinee)
        return self.examinee

    def _run_cells(self, examinee: Examinee) -> None:
        for index, (place, text) in enumerate(self.cells):
            try:
                examinee.run(text, place)
            except LostError as error:
                self.close()
                if monotonic() >= self.deadline:
                    raise
                self.cells = self.cells[:index]
                self.ended = f"Code cell {place} broke off the run: {error}. What came after was not run."
                return


def _expected(exercise: Exercise, case: Case) -> Outcome:
    return evaluate(exercise.reference, case, name=exercise.name, seconds=REFERENCE_SECONDS)
