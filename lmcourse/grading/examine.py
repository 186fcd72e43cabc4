"""Examine a submission: a sandboxed process runs its cells, and this process judges the results of its answers.

Each exercise is judged right after the cell with its answer has run, so later cells may reuse its names. Only this
process has references, hidden cases and points. A process may be lost because of an endless loop, an exit or a lack of
memory. Then a new process continues without the cell that caused the loss. If an answer calls an earlier, wrong answer,
it is judged again with the printed solution in place of the wrong answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import torch

from lmcourse.base.text import replace_unprintable
from lmcourse.course.chapters import TERM
from lmcourse.exercises.checking import seconds_after
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.judge import instead_of, judge
from lmcourse.exercises.limits import PATIENCE
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.trial import Trial
from lmcourse.grading import wire
from lmcourse.grading.cells import Cell, cells_to_run, course_imports, defined_names, reaches, read_cell
from lmcourse.grading.missing_answers import is_missing, not_defined, redefined, undefined_helper, why_missing
from lmcourse.grading.process import START_SECONDS, LostError, Settings, SubmissionProcess
from lmcourse.report import Report
from lmcourse.report.handed_in import SEAL, not_handed_in

GRACE_SECONDS = 5.0  # seconds between a request's own time limit and the killing of the process
MAX_LOST = 8  # largest number of processes that a submission may lose; a new process takes two seconds of CPU time

_UNDEFINED = re.compile(r"failed with NameError: name '(\w+)' is not defined")

MAX_PRINTED_CHARS, MAX_RESULT_CHARS = 2_000, 80


@dataclass(frozen=True)
class SubmittedCode:
    """A submission in the form that grading needs: its code cells, and data from the course's notebook."""

    sources: tuple[str, ...]
    answers: Mapping[int, str]  # the exercise of each cell with an answer, by the cell's number from 1
    graded: Mapping[int, str] = field(default_factory=dict)  # the nbgrader ids of plain tests, by cell number
    printed: Mapping[str, str] = field(default_factory=dict)  # the printed solutions, by exercise
    provided: tuple[str, ...] = ()  # the texts of the course's own cells, whose imports always run
    skipped: frozenset[str] = frozenset()  # those of them that grading does not run (see `cells_to_run`)
    data: tuple[Path, ...] = ()  # the assignment's data files
    file: bytes = b""  # the file in the saved outputs (see `handed_in`)
    seal: str = ""  # the digest in the saved outputs
    beside: Mapping[str, bytes] = field(default_factory=dict)  # the files handed in beside the notebook, by name


@dataclass(frozen=True)
class CellRun:
    """The result of one code cell: whether it ran, its output, its failure, and its last value as text."""

    run: bool = False
    printed: str = ""
    failure: str = ""
    result: str = ""


@dataclass(frozen=True)
class Examination:
    """The result of examining a submission: the reports by exercise, and what became of its cells, in order."""

    reports: dict[str, Report]
    cells: tuple[CellRun, ...] = ()
    broke_off: tuple[str, ...] = ()  # a sentence for each cell or request that was stopped or left out
    failed_cell: str = ""  # a sentence on the first failed cell that the learner wrote or changed, except answers


def examine(submitted: SubmittedCode, exercises: Sequence[Exercise], settings: Settings) -> Examination:
    """Return the reports on these exercises of a submission, as `check(f, hidden=True)` would give them.

    Raises CourseError if no process can be started on this machine, or if the course's own answer fails on it.
    """
    term = TERM.set(settings.term)
    try:
        return _examined(submitted, exercises, settings)
    finally:
        TERM.reset(term)


def _examined(submitted: SubmittedCode, exercises: Sequence[Exercise], settings: Settings) -> Examination:
    end = monotonic() + settings.total_seconds
    losses = iter(range(1, MAX_LOST))
    run = _Run(submitted, exercises, settings, end, losses)
    run.all_cells()
    reports = {exercise.name: run.reports[exercise.name] for exercise in exercises}
    waiting = list(exercises)
    while waiting:  # exercises that need the same printed solutions share a run
        wrong = {each.name: _wrong_before(each, reports, exercises, run.cells) for each in waiting}
        names = next(filter(None, wrong.values()), ())
        sharing = [each for each in waiting if wrong[each.name] == names]
        waiting = [each for each in waiting if wrong[each.name] not in ((), names)]
        if names:
            printed = [submitted.printed[name] for name in names]
            again = _Run(_with_printed(submitted, names), sharing, settings, end, losses, printed)
            again.all_cells()
            earlier = [reports[name] for name in names]
            reports |= {name: _better(reports[name], report, earlier) for name, report in again.reports.items()}
    cells = tuple(run.results.get(number, CellRun()) for number in range(1, len(submitted.sources) + 1))
    return Examination(reports, cells, tuple(run.broke_off), _failed_cell(submitted, run))


def _better(own: Report, again: Report, earlier: Sequence[Report]) -> Report:
    """Return the report to give on an answer that calls wrong earlier answers: the one with the printed solutions in
    their place if it has more points, or as many and a known mistake. Else the report is on the first wrong answer."""
    if (again.points, bool(again.mistake)) > (own.points, False):
        return replace(again, stand_ins=tuple(report.exercise for report in earlier))
    return next(filter(None, (instead_of(own, report) for report in earlier)), own)


def _failed_cell(submitted: SubmittedCode, run: _Run) -> str:
    course = {text.strip() for text in submitted.provided}
    for number, what in sorted(run.troubles.items()):
        own = number not in submitted.answers and number not in submitted.graded
        lacks = _UNDEFINED.match(what)
        if lacks and lacks[1] in run.left_out:
            continue  # a cell of the course's defines it, which runs in the notebook but not here
        if own and number not in run.stopped and submitted.sources[number - 1].strip() not in course:
            return f"Code cell {number} {what}."
    return ""


def _wrong_before(
    exercise: Exercise, reports: Mapping[str, Report], exercises: Sequence[Exercise], cells: Sequence[Cell]
) -> tuple[str, ...]:
    """Return the failed exercises that a failed answer calls, and those that their printed solutions call."""
    if reports[exercise.name].passed:
        return ()
    uses = {each.name: each.uses for each in exercises}
    failed = {name for name in uses if not reports[name].passed}
    called = _all_uses(exercise.name, uses) & reaches(exercise.name, cells) & failed
    # A learner's answer that only raises an error calls fewer exercises than its printed solution.
    wrong = called.union(*(_all_uses(name, uses) for name in called)) & failed
    return tuple(name for name in uses if name in wrong)


def _all_uses(name: str, uses: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the exercises that the printed solution of an exercise calls, directly or through others."""
    found: set[str] = set()
    waiting = [*uses[name]]
    while waiting:
        if (one := waiting.pop()) in uses and one not in found:
            found.add(one)
            waiting += uses[one]
    return found


def _with_printed(submitted: SubmittedCode, names: Collection[str]) -> SubmittedCode:
    """Return the submission with printed solutions in the cells of these answers."""
    sources = {number: submitted.printed[name] for number, name in submitted.answers.items() if name in names}
    texts = tuple(sources.get(number, text) for number, text in enumerate(submitted.sources, 1))
    return replace(submitted, sources=texts, graded={})


class _Run:
    """A run of a submission's cells. Lost processes are replaced; `losses` limits their number.

    `before` has texts that run before the first cell: printed solutions whose own cells may be missing. `troubles` has
    what went wrong in cells, by cell number, as words that follow "code cell 7".
    """

    def __init__(
        self,
        submitted: SubmittedCode,
        exercises: Sequence[Exercise],
        settings: Settings,
        end: float,
        losses: Iterator[int],
        before: Sequence[str] = (),
    ) -> None:
        self.reports: dict[str, Report] = {}
        self.results: dict[int, CellRun] = {}
        self.broke_off: list[str] = []
        self.stopped: set[int] = set()
        self.troubles: dict[int, str] = {}
        self._submitted, self._settings, self._end, self._losses = submitted, settings, end, losses
        self._exercises = {exercise.name: exercise for exercise in exercises}
        self._before = "\n".join([course_imports(submitted.provided), *before])
        self._ends_early = bool(before)
        self._judge_again: set[str] = set()
        answers, graded = submitted.answers, submitted.graded
        read = [
            read_cell(number, text, answers.get(number, ""), graded.get(number, ""))
            for number, text in enumerate(submitted.sources, 1)
        ]
        for cell in read:
            if cell.problem:
                self._keep(cell.number, CellRun(True, "", cell.problem))
        self.cells = cells_to_run([cell for cell in read if cell.text.strip() or cell.problem], submitted.skipped)
        self.left_out = defined_names([cell for cell in read if cell not in self.cells])

    def all_cells(self) -> None:
        """Run the cells, and judge each exercise; raise CourseError as `examine` does."""
        while True:
            try:
                with closing(SubmissionProcess(self._submitted.data, self._settings, self._end)) as process:
                    self._in_one_process(process)
                break
            except LostError:
                if monotonic() >= self._end:
                    self.broke_off.append(f"The notebook ran longer than {self._settings.total_seconds:g} s in all.")
                    break
                if next(self._losses, None) is None:
                    self.broke_off.append(f"The notebook ended Python {MAX_LOST} times: the rest was not run.")
                    break
        not_run = [cell.number for cell in self.cells if cell.text.strip() and cell.number not in self.results]
        self.stopped |= {*not_run}
        self.troubles |= dict.fromkeys(not_run, "was not run")
        for name, exercise in self._exercises.items():
            if name not in self.reports:
                self._judge(exercise, [Outcome(failure=not_defined(name))] * len(outcomes_of(exercise).cases))

    def _in_one_process(self, process: SubmissionProcess) -> None:
        """Run the cells in one process, and judge each exercise once; raise LostError if the process is lost."""
        names = [each.file.name for each in self._exercises.values() if each.file]
        contents = {**self._submitted.beside, **dict.fromkeys(names, self._submitted.file)}
        files = {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in contents.items() if data}
        process.ask("start", START_SECONDS, text=self._before, files=files)
        for cell in self.cells:
            if cell.text.strip() and cell.number not in self.stopped:
                self._run_cell(process, cell)
                if cell.answer in self._exercises and cell.answer not in self.reports:
                    self._run_cases(process, self._exercises[cell.answer])
                    if self._ends_early and self._exercises.keys() <= self.reports.keys() and not self._judge_again:
                        return
        # An answer, or a name that it needs, may be in a later cell.
        for name, exercise in self._exercises.items():
            if self._is_open(name) and process.ask("last_value", GRACE_SECONDS, name=name):
                before = self.reports.pop(name, None)
                self._run_cases(process, exercise)
                if before and before.points >= self.reports[name].points:
                    self.reports[name] = before

    def _is_open(self, name: str) -> bool:
        """Return True if an exercise should be judged again after all cells have run."""
        report = self.reports.get(name)
        elsewhere = any(name in cell.defined for cell in self.cells if cell.answer != name)
        return report is None or name in self._judge_again or (elsewhere and not report.answered)

    def _run_cell(self, process: SubmissionProcess, cell: Cell) -> None:
        seconds = self._settings.cell_seconds
        request = {"text": cell.text, "number": cell.number, "answer": cell.answer, "seconds": seconds}
        try:
            reply = process.ask("cell", PATIENCE * seconds + GRACE_SECONDS, **request)
            record = wire.record_of(reply, "printed", "failure", "result")
            failure = None if record["failure"] is None else wire.failure_from_plain(record["failure"])
            printed = replace_unprintable(wire.text_from(record["printed"], MAX_PRINTED_CHARS), keep="\n\t")
            result = wire.text_from(record["result"], MAX_RESULT_CHARS)
        except (LostError, wire.ProtocolError) as error:
            lost = _lost(error)
            self.stopped.add(cell.number)
            self._keep(cell.number, CellRun(True, "", str(lost)), str(lost))
            self.broke_off.append(f"Code cell {cell.number} {lost}. It was left out.")
            raise lost from None
        self._keep(cell.number, CellRun(True, printed, str(failure or ""), result))
        if failure and failure.kind == "TimeLimitExceeded":
            self.stopped.add(cell.number)
            self.broke_off.append(f"Code cell {cell.number} ran longer than {seconds:g} s and was stopped.")

    def _keep(self, number: int, result: CellRun, trouble: str = "") -> None:
        self.results[number] = result
        self.troubles.pop(number, None)
        if result.failure:
            self.troubles[number] = trouble or f"failed with {result.failure.removesuffix('.')}"

    def _run_cases(self, process: SubmissionProcess, exercise: Exercise) -> None:
        """Run an answer on all cases, and judge it. If the process is lost, judge the outcomes so far and raise
        LostError."""
        outcomes: list[Outcome] = []
        name, forbid, seconds = exercise.name, list(exercise.rules), exercise.seconds
        cases = [case for case, _ in outcomes_of(exercise).cases]
        forbidden: tuple[Use, ...] = ()
        lost: LostError | None = None
        try:
            if not exercise.value:
                forbidden = wire.uses_from_plain(process.ask("forbidden", GRACE_SECONDS, name=name, forbid=forbid))
            for case in cases:
                request = {"name": name, "value": exercise.value, "case": wire.case_to_plain(case), "forbid": forbid}
                reply = process.ask("case", PATIENCE * seconds + GRACE_SECONDS, seconds=seconds, **request)
                outcomes.append(wire.outcome_from_plain(reply))
                seconds = seconds_after(outcomes[-1], seconds)
        except (LostError, wire.ProtocolError) as error:
            lost = _lost(error)
            rest = Outcome(failure=Failure(("PythonEnded",), f"the answer {lost}"))
            outcomes += [rest] * (len(cases) - len(outcomes))
        self._judge(exercise, outcomes, forbidden, f"While `{name}` was checked, it {lost}." if lost else "")
        if lost:
            process.close()
            raise lost

    def _judge(
        self, exercise: Exercise, outcomes: Sequence[Outcome], forbidden: Sequence[Use] = (), lost: str = ""
    ) -> None:
        table, name = outcomes_of(exercise), exercise.name
        if is_missing(name, outcomes) and self._is_unwritten(name):
            outcomes = [Outcome(failure=Failure(("NotImplementedError",), ""))] * len(outcomes)
        trials = [
            Trial(exercise, case, hidden, outcome, table.expected(case))
            for (case, hidden), outcome in zip(table.cases, outcomes, strict=True)
        ]
        sealed = SEAL.set(self._submitted.seal)
        report = judge(exercise, trials, hidden=True, forbidden=forbidden)
        SEAL.reset(sealed)
        self._judge_again.discard(name)
        if is_missing(name, outcomes):
            others = [other for other in self._exercises if other != name]
            lost = lost or why_missing(name, self.cells, self.troubles, others)
        elif undefined := undefined_helper(name, outcomes, self.cells, self.troubles):
            self._judge_again.add(name)
            lost = lost or undefined
        elif exercise.file and not self._submitted.file and report.answered and not report.passed:
            lost = lost or not_handed_in(exercise.file.name)
        elif report.answered and not report.passed and not report.mistake and not lost:
            lost = redefined(name, self.cells)
        self.reports[name] = replace(report, diagnosis=lost or report.diagnosis)

    def _is_unwritten(self, name: str) -> bool:
        """Return True if the cell of an answer raises the stub's error, as a class does whose body is the answer."""
        own = [self.results[cell.number] for cell in self.cells if cell.answer == name and cell.number in self.results]
        return any(run.failure.startswith("NotImplementedError") for run in own)


def _lost(error: LostError | wire.ProtocolError) -> LostError:
    return error if isinstance(error, LostError) else LostError(f"sent an invalid answer ({error})")
