"""Grading a notebook from outside: its process answers, this one knows what is right."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.grading.examination.examinee import Examinee, LostError, Patience
from lmcourse.grading.examination.expectations import expectations
from lmcourse.grading.examination.host import Host
from lmcourse.grading.examination.missing import is_missing, why_missing
from lmcourse.grading.examination.needless import needless
from lmcourse.grading.examination.rules import Source
from lmcourse.grading.examination.showing import only_shows, showing_names
from lmcourse.grading.examination.suspicious import suspicious
from lmcourse.grading.examination.texts import cells_of, no_python
from lmcourse.grading.examination_result import CellRun, Evidence, ExaminationResult, distinct_evidence
from lmcourse.report import Report


def examine(
    sources: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int,
    host: Host,
    patience: Patience | None = None,
    handed_out: Collection[str] = (),
) -> ExaminationResult:
    """Grade a notebook that is not trusted.

    For honest work the reports are those of `check_exercise(hidden=True)`.

    Args:
        sources: the code cells of the notebook, in order.
        exercises: what they answer.
        seed: of the hidden cases; the notebook never gets to know it.
        host: starts the notebook's process, and another one when the first is lost.
        patience: how long the notebook may take.
        handed_out: the texts of cells that the course itself put into the notebook. Those that no answer needs are
            not run (see `needless`).

    Raises:
        CourseError: the host starts no process, or the course's own answer fails here.
    """
    begin = monotonic()
    examination = _Examination(sources, exercises, seed, host, patience or Patience(), handed_out)
    try:
        reports = {exercise.name: examination.report(exercise) for exercise in exercises}
    finally:
        examination.close()
    evidence = distinct_evidence([*examination.evidence, *suspicious(examination.read)])
    return ExaminationResult(reports, tuple(examination.runs), examination.ended, evidence, monotonic() - begin)


class _Examination:
    """One notebook. A process that is lost is replaced for the next exercise: one bad answer must not cost all."""

    def __init__(
        self,
        sources: Sequence[str],
        exercises: Sequence[Exercise],
        seed: int,
        host: Host,
        patience: Patience,
        handed_out: Collection[str],
    ) -> None:
        self.sources = sources
        self.seed = seed
        self.host = host
        self.patience = patience
        self.deadline = monotonic() + patience.total
        self.read = self.cells = cells_of(sources)
        self.source = Source([cell.text for cell in self.cells])
        self.names = [exercise.name for exercise in exercises]
        shown = showing_names([cell.tree for cell in self.cells])
        self.unrun = {cell.place for cell in self.cells if only_shows(cell.tree, shown)}
        self.unrun |= needless([cell for cell in self.cells if cell.place not in self.unrun], handed_out, self.names)
        python = {cell.place for cell in self.cells}
        self.runs = [
            CellRun(failure="" if place in python or not source.strip() else no_python(source))
            for place, source in enumerate(sources, 1)
        ]
        self.ended = ""
        self.evidence: list[Evidence] = []
        self.examinee: Examinee | None = None

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
        return replace(report, diagnosis=reason) if (reason := lost or self._reason(report, outcomes)) else report

    def _reason(self, report: Report, outcomes: Sequence[Outcome]) -> str:
        """What a report on an answer that is not there, or that a broken-off run may have cost, has to say."""
        missing = is_missing(report.exercise, outcomes)
        if self.ended and (missing or not (report.passed or report.diagnosis)):
            return self.ended
        return why_missing(report.exercise, self.sources, self.runs, self.cells, self.names) if missing else ""

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
            if monotonic() >= self.deadline:
                self.ended = self.ended or f"There was no time for all of it: {error}."
        return [outcomes.get(place, rest) for place in range(len(cases))], lost

    def _ready(self) -> Examinee:
        """A process in which the cells have run; up to the one that ends every process, if there is one."""
        while self.examinee is None:
            if monotonic() >= self.deadline:
                raise self.patience.spent
            examinee = Examinee(self.host, self.patience, self.deadline)
            self.examinee = examinee.__enter__()
            self._run_cells(examinee)
        return self.examinee

    def _run_cells(self, examinee: Examinee) -> None:
        for index, cell in enumerate(self.cells):
            if cell.place in self.unrun:
                continue
            try:
                outcome = examinee.run(cell.text, cell.place)
            except LostError as error:
                self.close()
                self.runs[cell.place - 1] = CellRun(run=True, failure=str(error))
                self.ended = f"Code cell {cell.place} broke off the run: {error}. What came after was not run."
                if monotonic() >= self.deadline:
                    raise
                self.cells = self.cells[:index]
                self.source = Source([cell.text for cell in self.cells])
                return
            self.runs[cell.place - 1] = CellRun(True, outcome.printed, str(outcome.failure or ""))
