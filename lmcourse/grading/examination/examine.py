"""Grade a notebook from outside: its process runs the code, this one compares outcomes with the reference."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import case_seconds
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.grading.examination.code_cells import cells_of, why_not_python
from lmcourse.grading.examination.expectations import expectations
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.missing_answers import is_missing, why_missing
from lmcourse.grading.examination.notebook_process import LostError, NotebookProcess, Timeouts
from lmcourse.grading.examination.skipped_cells import display_names, only_displays, unneeded_cells
from lmcourse.grading.examination.source_rules import NotebookSource
from lmcourse.grading.examination.suspicious_code import suspicious_code
from lmcourse.grading.examination_result import CellRun, Evidence, ExaminationResult, distinct_evidence
from lmcourse.report import Report


def examine(
    sources: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int,
    launcher: Launcher,
    timeouts: Timeouts | None = None,
    provided_cells: Collection[str] = (),
) -> ExaminationResult:
    """Grade a notebook that is not trusted.

    For honest work the reports are those of `check_exercise(hidden=True)`.

    Args:
        sources: the code cells of the notebook, in order.
        exercises: what they answer.
        seed: of the hidden cases; the notebook never gets to know it.
        launcher: starts the notebook's process, and another one when the first is lost.
        timeouts: how long the notebook may take.
        provided_cells: the texts of cells that the course itself put into the notebook. Those that no answer needs are
            not run (see `skipped_cells`).

    Raises:
        CourseError: the launcher starts no process, or the course's own answer fails here.
    """
    begin = monotonic()
    examination = _Examination(sources, exercises, seed, launcher, timeouts or Timeouts(), provided_cells)
    try:
        reports = {exercise.name: examination.report(exercise) for exercise in exercises}
    finally:
        examination.close()
    evidence = distinct_evidence([*examination.evidence, *suspicious_code(examination.python_cells)])
    return ExaminationResult(reports, tuple(examination.runs), examination.ended, evidence, monotonic() - begin)


class _Examination:
    """One notebook. A process that is lost is replaced for the next exercise: one bad answer must not cost all."""

    def __init__(
        self,
        sources: Sequence[str],
        exercises: Sequence[Exercise],
        seed: int,
        launcher: Launcher,
        timeouts: Timeouts,
        provided_cells: Collection[str],
    ) -> None:
        self.sources = sources
        self.seed = seed
        self.launcher = launcher
        self.timeouts = timeouts
        self.deadline = monotonic() + timeouts.total
        self.python_cells = self.cells = cells_of(sources)
        self.source = NotebookSource([cell.text for cell in self.cells])
        self.names = [exercise.name for exercise in exercises]
        display = display_names([cell.tree for cell in self.cells])
        self.skipped = {cell.number for cell in self.cells if only_displays(cell.tree, display)}
        rest = [cell for cell in self.cells if cell.number not in self.skipped]
        self.skipped |= unneeded_cells(rest, provided_cells, self.names)
        python = {cell.number for cell in self.cells}
        self.runs = [
            CellRun(failure="" if number in python or not source.strip() else why_not_python(source))
            for number, source in enumerate(sources, 1)
        ]
        self.ended = ""
        self.evidence: list[Evidence] = []
        self.process: NotebookProcess | None = None

    def close(self) -> None:
        """Kill the notebook's process, if there is one, and keep what was noticed of it."""
        if self.process:
            self.process.close()
            self.evidence += self.process.evidence()
        self.process = None

    def report(self, exercise: Exercise) -> Report:
        """The report on one exercise. Raises CourseError."""
        expected = expectations(exercise, self.seed)
        outcomes, lost = self._outcomes(exercise, [case for case, _ in expected.cases])
        trials = [
            Trial(case, hidden, outcome, expected.expected(case))
            for (case, hidden), outcome in zip(expected.cases, outcomes, strict=True)
        ]
        forbidden = self.source.forbidden(exercise.name, exercise.rules)
        report = judge(exercise, trials, hidden=True, forbidden=forbidden, guess=expected.guess)
        return replace(report, diagnosis=reason) if (reason := lost or self._reason(report, outcomes)) else report

    def _reason(self, report: Report, outcomes: Sequence[Outcome]) -> str:
        """What a report on an answer that is not there, or that a broken-off run may have cost, has to say."""
        missing = is_missing(report.exercise, outcomes)
        if self.ended and (missing or not report.passed):
            return self.ended
        return why_missing(report.exercise, self.sources, self.runs, self.cells, self.names) if missing else ""

    def _outcomes(self, exercise: Exercise, cases: Sequence[Case]) -> tuple[list[Outcome], str]:
        """What came of each case, and the reason if the process was lost on the way.

        The cases are put in an order that depends on the seed, so that nothing tells public from hidden ones.
        """
        outcomes: dict[int, Outcome] = {}
        rest = Outcome()
        lost = ""
        order = random.Random(f"{exercise.name}/{self.seed}/order").sample(range(len(cases)), len(cases))
        try:
            process = self._running_process()
            for index in order:
                late = sum(outcome.timed_out for outcome in outcomes.values())
                seconds = case_seconds(exercise.seconds, late)
                outcomes[index] = process.run_case(exercise, cases[index], seconds)
        except LostError as error:
            self.close()
            rest = Outcome(failure=error.failure)
            lost = f"While `{exercise.name}` was checked: {error}."
            if monotonic() >= self.deadline:
                self.ended = self.ended or f"There was no time for all of it: {error}."
        return [outcomes.get(index, rest) for index in range(len(cases))], lost

    def _running_process(self) -> NotebookProcess:
        """A process in which the cells have run; up to the one that ends every process, if there is one."""
        while self.process is None:
            if monotonic() >= self.deadline:
                raise self.timeouts.total_exceeded
            process = NotebookProcess(self.launcher, self.timeouts, self.deadline)
            process.wait_until_ready()
            self.process = process
            self._run_cells(process)
        return self.process

    def _run_cells(self, process: NotebookProcess) -> None:
        for index, cell in enumerate(self.cells):
            if cell.number in self.skipped:
                continue
            try:
                outcome = process.run(cell.text, cell.number)
            except LostError as error:
                self.close()
                self.runs[cell.number - 1] = CellRun(run=True, failure=str(error))
                self.ended = f"Code cell {cell.number} broke off the run: {error}. What came after was not run."
                if monotonic() >= self.deadline:
                    raise
                self.cells = self.cells[:index]
                self.source = NotebookSource([cell.text for cell in self.cells])
                return
            self.runs[cell.number - 1] = CellRun(True, outcome.printed, str(outcome.failure or ""))
