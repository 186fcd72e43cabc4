"""The examination of one notebook: its runs, the report on each exercise, and what the reports have to explain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import Names, hold_from_the_start
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
from lmcourse.grading.examination.notebook_process import Timeouts
from lmcourse.grading.examination.notebook_run import NotebookRun, RuleRun, Starting
from lmcourse.grading.examination.rule_runs import (
    all_statements,
    compute_nothing,
    needed_statements,
)
from lmcourse.grading.examination.skipped_cells import display_names, only_displays, unneeded_cells
from lmcourse.grading.examination.source_rules import NotebookSource
from lmcourse.grading.examination.stand_ins import stand_ins_for
from lmcourse.grading.examination_result import CellRun, Evidence
from lmcourse.report import Report

Judged = tuple[Report, bool]
"""The report on an exercise, and whether the process was lost in which its answer was judged."""


class NotebookExamination:
    """One notebook: a run of its cells without rules, and another one for each set of rules that holds from the start.

    Only one of the runs has a process at a time.
    """

    def __init__(
        self,
        sources: Sequence[str],
        answer_cells: Mapping[str, int],
        exercises: Sequence[Exercise],
        seed: int,
        launcher: Launcher,
        timeouts: Timeouts,
        deadline: float,
        provided_cells: Collection[str],
        stand_ins: Collection[str] = (),
    ) -> None:
        self.with_stand_ins = partial(
            NotebookExamination, sources, answer_cells, exercises, seed, launcher, timeouts, deadline, provided_cells
        )
        self.sources = sources
        self.answer_cells = answer_cells
        self.exercises = exercises
        self.stand_ins = stand_ins
        self.seed = seed
        self.names = [exercise.name for exercise in exercises]
        self.python_cells = self.cells = cells_of(sources)
        self.source = NotebookSource(self.cells, answer_cells, stand_ins)
        display = display_names(self.cells)
        rest = [cell for cell in self.cells if not only_displays(cell.tree, display)]
        unneeded = unneeded_cells(rest, provided_cells, self.names, unchanged=self.names)
        python = {cell.number for cell in self.cells}
        results = [
            CellRun(failure="" if number in python or not source.strip() else why_not_python(source))
            for number, source in enumerate(sources, 1)
        ]
        answers = {number: name for name, number in answer_cells.items()}
        replaced = tuple(each for each in exercises if each.name in stand_ins)
        self.starting = Starting(answers, launcher, timeouts, deadline, seed, replaced)
        self.plain = NotebookRun(self.starting, [cell for cell in rest if cell.number not in unneeded], results)
        self.under_rules: dict[Names, Sequence[NotebookRun]] = {}
        self.with_others: list[NotebookExamination] = []

    @property
    def evidence(self) -> list[Evidence]:
        """Evidence of tampering; complete once this is closed."""
        found = [run.evidence for run in self._all_runs()] + [other.evidence for other in self.with_others]
        return [*chain.from_iterable(found)]

    def close(self) -> None:
        """Kill the notebook's process, if there is one, and keep what was noticed of it."""
        for run in self._all_runs():
            run.close()
        for other in self.with_others:
            other.close()

    def _all_runs(self) -> list[NotebookRun]:
        return [self.plain, *chain.from_iterable(self.under_rules.values())]

    def reports(self) -> dict[str, Report]:
        """The reports on all exercises. Raises CourseError."""
        found = {exercise.name: self._report_without(exercise) for exercise in self.exercises}
        rest = [exercise for exercise in self.exercises if found[exercise.name] is None]
        for exercise in sorted(rest, key=lambda exercise: exercise.rules):  # so that each run begins once
            found[exercise.name] = self._report_under_rules(exercise)
        return {name: judged[0] for name, judged in found.items() if judged}

    def report(self, exercise: Exercise) -> Judged:
        """The report on one exercise. Raises CourseError."""
        return self._report_without(exercise) or self._report_under_rules(exercise)

    def _report_without(self, exercise: Exercise) -> Judged | None:
        """The report on an exercise with whose rules no run has to begin, or on an answer that earns nothing either
        way. Raises CourseError."""
        if not hold_from_the_start(exercise.rules):
            return self._report_in(self.plain, exercise)
        expected = expectations(exercise, self.seed)
        [(case, hidden), *_] = expected.cases
        [outcome], _ = self._open(self.plain).outcomes(exercise, [case], rules=())
        self._read_on()
        if Trial(exercise, case, hidden, outcome, expected.expected(case)).wrong is None:
            return None
        judged = self._report_in(self.plain, exercise, enforced=())  # thousands of functions need not be made to refuse
        return None if judged[0].points else judged

    def _report_under_rules(self, exercise: Exercise) -> Judged:
        """The report on an exercise in a run that begins with its rules. Raises CourseError.

        The answer gets the statements that it seems to need, and if it is not right with them, all.
        """
        rules = exercise.rules
        if rules not in self.under_rules:
            self.under_rules[rules] = self._new_runs(rules)
        first, *others = self.under_rules[rules]
        best, lost = self._report_in(first, exercise)
        for run in others:
            if best.answered and not best.passed:
                report, lost_again = self._report_in(run, exercise)
                if report.points > best.points:
                    best, lost = report, lost_again
        return best, lost

    def _new_runs(self, rules: Names) -> Sequence[NotebookRun]:
        """The runs that begin with these rules: of the statements that are needed, and of all, if there are others.

        Where a process costs much, and no statement computes anything, it is the one without rules.
        """
        cells = self.plain.cells
        asked = [each.name for each in self.exercises if each.rules == rules]
        every = all_statements(cells, self.plain.failed_lines)
        needed = needed_statements(cells, every, asked, self.names)
        if not self.starting.launcher.quick and compute_nothing(cells, every):
            return [self.plain]
        chosen = [needed] if needed == every else [needed, every]
        return [RuleRun(self.starting, cells, rules, statements) for statements in chosen]

    def _open(self, run: NotebookRun) -> NotebookRun:
        """The run, once no other one has a process."""
        for other in self._all_runs():
            if other is not run:
                other.close()
        return run

    def _read_on(self) -> None:
        """Read the text only up to the cell that ends every process."""
        end = self.plain.broken_off
        if end and len(self.cells) == len(self.python_cells):
            self.cells = [cell for cell in self.python_cells if cell.number < end]
            self.source = NotebookSource(self.cells, self.answer_cells, self.stand_ins)

    def _report_in(self, run: NotebookRun, exercise: Exercise, enforced: Names | None = None) -> Judged:
        """The report on an exercise in one run, by default with what it rules out refused. Raises CourseError."""
        expected = expectations(exercise, self.seed)
        cases = [case for case, _ in expected.cases]
        outcomes, lost = self._open(run).outcomes(exercise, cases, enforced, exercise.rules)
        self._read_on()
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
        if report.answered and not report.passed and (refused := run.why_refused()):
            return replace(report, diagnosis=refused), bool(lost)
        broken = bool(forbidden) or any(outcome.forbidden for outcome in outcomes)
        ended = run.ended or self.plain.ended
        return self._with_reason(report, outcomes, lost, ended, broken=broken), bool(lost)

    def _with_reason(
        self, report: Report, outcomes: Sequence[Outcome], lost: str, ended: str, *, broken: bool
    ) -> Report:
        """The report, with what it has to say of an answer that is not where it belongs, or of a run that broke off."""
        name, results = report.exercise, self.plain.results
        missing = is_missing(name, outcomes)
        if lost or (ended and (missing or not report.passed)):
            return replace(report, diagnosis=lost or ended)
        own = self.answer_cells.get(name)
        if missing or not report.answered:
            if elsewhere := found_elsewhere(name, own, self.cells):
                return replace(report, diagnosis=elsewhere, answered=True)
        elif not report.passed and not broken and (twice := redefined(name, own, self.cells)):
            return replace(report, diagnosis=twice)
        if missing:
            return replace(report, diagnosis=why_missing(name, self.sources, results, self.cells, self.names))
        if undefined := undefined_helper(name, outcomes, self.source, self.cells, results):
            return replace(report, diagnosis=undefined)
        return report

    def reports_with_stand_ins(self, reports: Mapping[str, Report]) -> dict[str, Report]:
        """Reports on the answers that an earlier one has spoilt, with the course's in its place. Raises CourseError.

        Args:
            reports: on all exercises. They are final but for those given here, and this examination is over.
        """
        final = dict(reports)
        again = self
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
                again = self.with_stand_ins(names)
                self.with_others.append(again)
            report, lost = again.report(exercise)
            if not lost and report.points >= final[exercise.name].points:
                ordered = tuple(name for name in self.names if name in names)
                final[exercise.name] = replace(report, stand_ins=ordered)
        return {name: report for name, report in final.items() if report is not reports[name]}
