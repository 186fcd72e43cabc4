"""A notebook whose cells have run in a process of its own, and which now answers cases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import seconds_after
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import Names
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.examination.code_cells import Cell
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.notebook_process import LostError, NotebookProcess, Timeouts
from lmcourse.grading.examination.rule_runs import Chosen, computing, without
from lmcourse.grading.examination.running_cells import Refused
from lmcourse.grading.examination.stand_ins import StandIns
from lmcourse.grading.examination_result import CellRun, Evidence

MAX_RUNS = 6
"""Processes in which the cells are run under one set of rules, until none of their statements runs into one."""


@dataclass(frozen=True)
class Starting:
    """What all processes of a notebook are started with.

    Attributes:
        answers: the names of the exercises by the numbers of their cells.
        launcher: starts each process, one after the other.
        timeouts: how long each step may take.
        deadline: when all has to be over, by `monotonic`.
        seed: of the order of the cases.
        stand_ins: the exercises for whose answers the course's own stand in.
    """

    answers: dict[int, str]
    launcher: Launcher
    timeouts: Timeouts
    deadline: float
    seed: int
    stand_ins: tuple[Exercise, ...] = ()

    def process(self) -> NotebookProcess:
        """A process that waits for cells. Raises CourseError and LostError."""
        if self.out_of_time:
            raise self.timeouts.total_exceeded
        process = NotebookProcess(self.launcher, self.timeouts, self.deadline, StandIns(self.stand_ins))
        process.wait_until_ready()
        return process

    @property
    def out_of_time(self) -> bool:
        """Whether all has to be over."""
        return monotonic() >= self.deadline


class NotebookRun:
    """A run of a notebook's cells. A process that is lost is replaced for the next exercise: one bad answer must not
    cost all.

    Attributes:
        cells: that are run; up to the one that ends every process, if there is one.
        results: what came of each code cell of the notebook.
        failed_lines: where cells ended with an exception, by their number.
        broken_off: the number of the cell that ended the process, or None.
        ended: why the cells did not all run, or the cases; nothing if they did.
        evidence: of tampering; complete once it is closed.
    """

    def __init__(self, starting: Starting, cells: Sequence[Cell], results: Sequence[CellRun] = ()) -> None:
        self.starting = starting
        self.cells = list(cells)
        self.results = list(results)
        self.failed_lines: dict[int, int] = {}
        self.broken_off: int | None = None
        self.ended = ""
        self.evidence: list[Evidence] = []
        self._process: NotebookProcess | None = None

    def close(self) -> None:
        """Kill the notebook's process, if there is one, and keep what was noticed of it."""
        if self._process:
            self._process.close()
            self.evidence += self._process.evidence()
        self._process = None

    def run_cells(self) -> None:
        """Run the cells, unless they have run in a process that is still there. Raises CourseError and LostError."""
        while self._process is None:
            self._process = self.starting.process()
            self._run_cells(self._process)

    def outcomes(
        self, exercise: Exercise, cases: Sequence[Case], rules: Names | None = None, noted: Names | None = None
    ) -> tuple[list[Outcome], str]:
        """What came of each case, and the reason if the process was lost on the way. Raises CourseError.

        Args:
            exercise: whose answer is asked.
            cases: of it.
            rules: what is refused meanwhile, if not what the exercise rules out.
            noted: what is noted if the answer uses it, if not what is refused.

        The cases are put in an order that depends on the seed, so that nothing tells public from hidden ones. After
        one that runs out of time the others get less, as in the notebook (`try_cases`).
        """
        outcomes: dict[int, Outcome] = {}
        rest = Outcome()
        lost, seconds = "", exercise.seconds
        order = random.Random(f"{exercise.name}/{self.starting.seed}/order").sample(range(len(cases)), len(cases))
        try:
            self.run_cells()
            for index in order:
                assert self._process is not None
                outcomes[index] = self._process.run_case(exercise, cases[index], seconds, rules, noted)
                seconds = seconds_after(outcomes[index], seconds)
        except LostError as error:
            self.close()
            rest = Outcome(failure=error.failure)
            lost = f"While `{exercise.name}` was checked: {error}."
            if self.starting.out_of_time:
                self.ended = self.ended or f"There was no time for all of it: {error}."
        return [outcomes.get(index, rest) for index in range(len(cases))], lost

    def why_refused(self) -> str:
        """Which cell ran into a rule, in one line; nothing if none did."""
        return ""

    def _run_cells(self, process: NotebookProcess) -> None:
        """Run the cells in a new process; close it if it is lost, or must not be used. Raises LostError."""
        for index, cell in enumerate(self.cells):
            try:
                outcome = process.run(cell.text, cell.number, self.starting.answers.get(cell.number, ""))
            except LostError as error:
                self.close()
                self.results[cell.number - 1] = CellRun(run=True, failure=str(error))
                self.ended = f"Code cell {cell.number} broke off the run: {error}. What came after was not run."
                if self.starting.out_of_time:
                    raise
                self.cells, self.broken_off = self.cells[:index], cell.number
                return
            self.results[cell.number - 1] = CellRun(True, outcome.printed, str(outcome.failure or ""))
            if outcome.failure:
                self.failed_lines[cell.number] = outcome.line


class RuleRun(NotebookRun):
    """A run in which the rules of an exercise hold before the first cell is run, and to the end.

    The cells are run statement by statement. Those that run into a rule are left out, and the cells run again without
    them in a new process.

    Attributes:
        refused: the statements that were left out, with the rules, by the number of their cell.
    """

    def __init__(self, starting: Starting, cells: Sequence[Cell], rules: Names, chosen: Chosen) -> None:
        super().__init__(starting, cells)
        self.rules = rules
        self.refused: dict[int, Refused] = {}
        self._chosen = chosen
        self._runs = 0

    def why_refused(self) -> str:
        """Which cell ran into a rule, in one line; nothing if none did."""
        for number, refused in sorted(self.refused.items()):
            for rule in (rule for _, rules in refused for rule in rules):
                return (
                    f"Code cell {number} uses `{rule.lstrip('.')}`, which this exercise asks you to do without: "
                    "what it makes with it is not there when your answer is judged."
                )
        return ""

    def _run_cells(self, process: NotebookProcess) -> None:
        self._runs += 1
        found: dict[int, Refused] = {}
        for cell in self.cells:
            statements = self._chosen[cell.number]
            try:
                answer = self.starting.answers.get(cell.number, "")
                outcome = process.run_under_rules(cell.text, cell.number, answer, self.rules, statements)
            except LostError:
                found[cell.number] = tuple((one, ()) for one in computing(cell, statements))
                if not found[cell.number] or self.starting.out_of_time:
                    raise
                break
            if outcome.refused:
                found[cell.number] = outcome.refused
        if not found:
            return
        self.close()
        self.refused = {**found, **self.refused}
        self._chosen = without(self._chosen, found)
        if self._runs >= MAX_RUNS:
            raise LostError("RuledOut", "the cells before it use what it rules out, again and again")
