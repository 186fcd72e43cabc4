"""Grade a notebook from outside: its process runs the code, this one compares outcomes with the reference."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import seconds_after
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.grading.examination.code_cells import cells_of, why_not_python
from lmcourse.grading.examination.expectations import expectations
from lmcourse.grading.examination.graded_text import in_our_words, without_results
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.missing_answers import (
    explain_unanswered,
    found_elsewhere,
    is_missing,
    redefined,
    undefined_helper,
    why_missing,
)
from lmcourse.grading.examination.notebook_process import LostError, NotebookProcess, Timeouts
from lmcourse.grading.examination.skipped_cells import display_names, only_displays, unneeded_cells
from lmcourse.grading.examination.source_rules import NotebookSource
from lmcourse.grading.examination.stand_ins import StandIns, stand_ins_for
from lmcourse.grading.examination.suspicious_code import suspicious_code
from lmcourse.grading.examination_result import CellRun, Evidence, ExaminationResult, distinct_evidence
from lmcourse.report import Report


def examine(
    sources: Sequence[str],
    answer_cells: Mapping[str, int],
    exercises: Sequence[Exercise],
    seed: int,
    launcher: Launcher,
    timeouts: Timeouts | None = None,
    provided_cells: Collection[str] = (),
) -> ExaminationResult:
    """Grade a notebook that is not trusted.

    For honest work the reports are those of `check_exercise(hidden=True)`, but for the results of the learner's code,
    which they do not show (see `graded_text`).

    Args:
        sources: the code cells of the notebook, in order.
        answer_cells: the numbers, from 1 on, of the cells for the answers, by exercise: nothing else answers one.
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
    examination = _Examination(sources, answer_cells, exercises, seed, launcher, timeouts or Timeouts(), provided_cells)
    try:
        reports = {exercise.name: examination.report(exercise) for exercise in exercises}
        reports |= examination.reports_with_stand_ins(reports)
    finally:
        examination.close()
    evidence = distinct_evidence([*examination.evidence, *suspicious_code(examination.python_cells)])
    return ExaminationResult(reports, tuple(examination.runs), examination.ended, evidence, monotonic() - begin)


class _Examination:
    """One notebook. A process that is lost is replaced for the next exercise: one bad answer must not cost all."""

    def __init__(
        self,
        sources: Sequence[str],
        answer_cells: Mapping[str, int],
        exercises: Sequence[Exercise],
        seed: int,
        launcher: Launcher,
        timeouts: Timeouts,
        provided_cells: Collection[str],
        stand_ins: Collection[str] = (),
    ) -> None:
        self.with_stand_ins = partial(
            _Examination, sources, answer_cells, exercises, seed, launcher, timeouts, provided_cells
        )
        self.sources = sources
        self.answer_cells = answer_cells
        self.exercises = exercises
        self.stand_ins = stand_ins
        self.seed = seed
        self.launcher = launcher
        self.timeouts = timeouts
        self.deadline = monotonic() + timeouts.total
        self.python_cells = self.cells = cells_of(sources)
        self.source = NotebookSource(self.cells, answer_cells, stand_ins)
        self.names = [exercise.name for exercise in exercises]
        display = display_names(self.cells)
        self.skipped = {cell.number for cell in self.cells if only_displays(cell.tree, display)}
        rest = [cell for cell in self.cells if cell.number not in self.skipped]
        self.skipped |= unneeded_cells(rest, provided_cells, self.names, unchanged=self.names)
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
        outcomes = [in_our_words(outcome, exercise.rules) for outcome in outcomes]
        trials = [
            Trial(exercise, case, hidden, outcome, expected.expected(case))
            for (case, hidden), outcome in zip(expected.cases, outcomes, strict=True)
        ]
        forbidden = self.source.forbidden(exercise.name, exercise.rules)
        report = judge(
            exercise,
            trials,
            hidden=True,
            forbidden=forbidden,
            agrees=expected.agrees,
            count_guesses=expected.count_guesses,
        )
        report = without_results(report, trials, value=exercise.value)
        broken = bool(forbidden) or any(outcome.forbidden for outcome in outcomes)
        return self._with_reason(report, outcomes, lost, broken=broken)

    def _with_reason(self, report: Report, outcomes: Sequence[Outcome], lost: str, *, broken: bool) -> Report:
        """The report, with what it has to say of an answer that is not where it belongs, or of a run that broke off."""
        name = report.exercise
        missing = is_missing(name, outcomes)
        if lost or (self.ended and (missing or not report.passed)):
            return replace(report, diagnosis=lost or self.ended)
        own = self.answer_cells.get(name)
        if missing or not report.answered:
            if elsewhere := found_elsewhere(name, own, self.cells):
                return replace(report, diagnosis=elsewhere, answered=True)
        elif not report.passed and not broken and (twice := redefined(name, own, self.cells)):
            return replace(report, diagnosis=twice)
        if missing:
            return replace(report, diagnosis=why_missing(name, self.sources, self.runs, self.cells, self.names))
        if undefined := undefined_helper(name, outcomes, self.source, self.cells, self.runs):
            return replace(report, diagnosis=undefined)
        return report

    def reports_with_stand_ins(self, reports: Mapping[str, Report]) -> dict[str, Report]:
        """Reports on the answers that an earlier one has spoilt, with the course's in its place. Raises CourseError.

        Args:
            reports: on all exercises. They are final but for those given here, and this examination is over.
        """
        final = dict(reports)
        again = self
        try:
            for exercise in self.exercises:
                if final[exercise.name].passed:
                    continue
                reached = self.source.reached(exercise.name)
                names = stand_ins_for(exercise, final, self.exercises, reached)
                if not names:
                    final[exercise.name] = explain_unanswered(final[exercise.name], final, reached)
                    continue
                if again.stand_ins != names:
                    again.close()
                    self.evidence += again.evidence if again is not self else []
                    again = self.with_stand_ins(names)
                    again.deadline = self.deadline
                report = again.report(exercise)
                if again.process and report.points >= final[exercise.name].points:
                    ordered = tuple(name for name in self.names if name in names)
                    final[exercise.name] = replace(report, stand_ins=ordered)
        finally:
            if again is not self:
                again.close()
                self.evidence += again.evidence
        return {name: report for name, report in final.items() if report is not reports[name]}

    def _outcomes(self, exercise: Exercise, cases: Sequence[Case]) -> tuple[list[Outcome], str]:
        """What came of each case, and the reason if the process was lost on the way.

        The cases are put in an order that depends on the seed, so that nothing tells public from hidden ones. After
        one that runs out of time the others get less, as in the notebook (`try_cases`).
        """
        outcomes: dict[int, Outcome] = {}
        rest = Outcome()
        lost, seconds = "", exercise.seconds
        order = random.Random(f"{exercise.name}/{self.seed}/order").sample(range(len(cases)), len(cases))
        try:
            process = self._running_process()
            for index in order:
                outcomes[index] = process.run_case(exercise, cases[index], seconds)
                seconds = seconds_after(outcomes[index], seconds)
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
            stand_ins = StandIns([each for each in self.exercises if each.name in self.stand_ins])
            process = NotebookProcess(self.launcher, self.timeouts, self.deadline, stand_ins)
            process.wait_until_ready()
            self.process = process
            self._run_cells(process)
        return self.process

    def _run_cells(self, process: NotebookProcess) -> None:
        answers = {number: name for name, number in self.answer_cells.items()}
        for index, cell in enumerate(self.cells):
            if cell.number in self.skipped:
                continue
            try:
                outcome = process.run(cell.text, cell.number, answers.get(cell.number, ""))
            except LostError as error:
                self.close()
                self.runs[cell.number - 1] = CellRun(run=True, failure=str(error))
                self.ended = f"Code cell {cell.number} broke off the run: {error}. What came after was not run."
                if monotonic() >= self.deadline:
                    raise
                self.cells = self.cells[:index]
                self.source = NotebookSource(self.cells, self.answer_cells, self.stand_ins)
                return
            self.runs[cell.number - 1] = CellRun(True, outcome.printed, str(outcome.failure or ""))
