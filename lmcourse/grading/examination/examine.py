"""Grading a notebook from outside: its process answers, this one knows what is right."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.report import Report
from lmcourse.exercises.trial import Trial
from lmcourse.grading.evidence import Evidence, distinct
from lmcourse.grading.examination.examinee import Examinee, LostError, Patience
from lmcourse.grading.examination.expectations import expectations
from lmcourse.grading.examination.host import Host
from lmcourse.grading.examination.rules import Source
from lmcourse.grading.examination.showing import only_shows, showing_names
from lmcourse.grading.examination.texts import python_of
from lmcourse.grading.examined import CellRun, Examined


def examine(
    sources: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int,
    host: Host,
    patience: Patience | None = None,
) -> Examined:
    """Grade a notebook that is not trusted.

    For honest work the reports are those of `check_exercise(hidden=True)`.

    Args:
        sources: the code cells of the notebook, in order.
        exercises: what they answer.
        seed: of the hidden cases; the notebook never gets to know it.
        host: starts the notebook's process, and another one when the first is lost.
        patience: how long the notebook may take.

    Raises:
        CourseError: the host starts no process.
    """
    begin = monotonic()
    examination = _Examination(sources, seed, host, patience or Patience())
    try:
        reports = {exercise.name: examination.report(exercise) for exercise in exercises}
    finally:
        examination.close()
    return Examined(
        reports,
        tuple(examination.runs),
        examination.ended,
        distinct(examination.evidence),
        monotonic() - begin,
    )


class _Examination:
    """One notebook. A process that is lost is replaced for the next exercise: one bad answer must not cost all."""

    def __init__(self, sources: Sequence[str], seed: int, host: Host, patience: Patience) -> None:
        self.cells = [(place, text) for place, source in enumerate(sources, 1) if (text := python_of(source))]
        self.source = Source([text for _, text in self.cells])
        self.runs = [CellRun()] * len(sources)
        self.seed = seed
        self.host = host
        self.patience = patience
        self.deadline = monotonic() + patience.total
        self.ended = ""
        self.evidence: list[Evidence] = []
        self.examinee: Examinee | None = None
        trees = {text: ast.parse(text) for _, text in self.cells}
        names = showing_names([*trees.values()])
        self.shown = {text for text, tree in trees.items() if only_shows(tree, names)}

    def close(self) -> None:
        if self.examinee:
            self.examinee.close()
            self.evidence += self.examinee.evidence()
        self.examinee = None

    def report(self, exercise: Exercise) -> Report:
        known = expectations(exercise, self.seed)
        outcomes, lost = self._outcomes(exercise, [case for case, _ in known.cases])
        trials = [
            Trial(case, hidden, outcome, known.expected(case))
            for (case, hidden), outcome in zip(known.cases, outcomes, strict=True)
        ]
        forbidden = self.source.forbidden(exercise.name, exercise.rules)
        report = judge(exercise, trials, hidden=True, forbidden=forbidden, guess=known.guess)
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
            examinee = Examinee(self.host, self.patience, self.deadline)
            self.examinee = examinee.__enter__()
            self._run_cells(examinee)
        return self.examinee

    def _run_cells(self, examinee: Examinee) -> None:
        for index, (place, text) in enumerate(self.cells):
            if text in self.shown:
                continue
            try:
                outcome = examinee.run(text, place)
                self.runs[place - 1] = CellRun(True, outcome.printed, str(outcome.failure or ""))
            except LostError as error:
                self.runs[place - 1] = CellRun(True, "", str(error))
                self.close()
                self.ended = f"Code cell {place} broke off the run: {error}. What came after was not run."
                if monotonic() >= self.deadline:
                    raise
                self.cells = self.cells[:index]
                self.source = Source([text for _, text in self.cells])
                return
