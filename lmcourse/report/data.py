"""The result of checking one exercise as plain data for JSON, and the id of its check cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, Self

CHECK_PREFIX = "check_"
"""Prefix of the nbgrader id of a check cell; the exercise's name follows."""


def check_id(exercise: str) -> str:
    """Return the id of the cell that checks an exercise, for Jupyter and for nbgrader."""
    return f"{CHECK_PREFIX}{exercise}"


def exercise_of(name: str) -> str:
    """Return the exercise that a cell with this id checks; any other id as it is."""
    return name.removeprefix(CHECK_PREFIX)


REPORT_MIME = "application/vnd.lmcourse.report+json"
"""The MIME type of a report's JSON in a notebook cell's output."""

MAX_FAILING_SHOWN = 3
"""Largest number of failing cases that a report shows with their calls; it only counts further ones."""

MIN_LINES_SHARED = 2
"""Smallest number of first lines that a report shows once for several cases."""

MAX_LIST_CHARS = 160

COUNTS = {2: "two", 3: "three"}

HIDDEN = "hidden: "
"""The beginning of a row for the hidden cases with the same name."""

OMITTED_IF_EMPTY = ("also_wrong", "notices", "hints", "stand_ins", "held_back", "table")


@dataclass(frozen=True)
class CaseResult:
    """The result of one case: its name, whether it passed, what differed, the call, and whether it is hidden.

    Attributes:
        call: the case as lines of Python.
        of: for a derived case, the name of the original case.
        values: the expected and the received value, in a line or more each, if they are small.
    """

    name: str
    passed: bool
    message: str = ""
    call: str = ""
    hidden: bool = False
    of: str = ""
    values: str = ""


@dataclass(frozen=True)
class ReportData:
    """The result of checking one exercise: cases, points, diagnosis.

    Attributes:
        mistake: the sentence of the known mistake that gives the same results; empty if none was recognised. For two
            mistakes made at once, a line for each.
        also_wrong: a sentence on failing cases that the known mistake does not explain.
        notices: sentences to read before the report, for example that the last version of the answer did not run.
        answered: False while the cell is unchanged.
        stand_ins: the earlier exercises whose printed solutions replaced the learner's answers while this exercise was
            judged.
        held_back: whether only the teacher has the hidden cases, as for a teacher's own exercise.
        table: for an open task, the measured numbers beside those of the baseline and the finish line: a header and
            rows.
    """

    exercise: str
    points: float
    max_points: int
    hidden: bool
    cases: tuple[CaseResult, ...]
    diagnosis: str = ""
    mistake: str = ""
    also_wrong: str = ""
    notices: tuple[str, ...] = ()
    groups: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    to_come: tuple[str, ...] = ()
    answered: bool = True
    stand_ins: tuple[str, ...] = ()
    held_back: bool = False
    table: tuple[tuple[str, ...], ...] = ()

    @property
    def passed(self) -> bool:
        """True if every case passed and no rule was broken."""
        return self.points == self.max_points

    @property
    def sentences(self) -> list[str]:
        """Return sentences on the mistakes: the diagnosis, and other failing cases.

        Other code can give the same results as a known mistake, so the report says no more than that they fit.
        """
        fit = "result fits" if len(self.cases) == 1 else "results fit"
        known = f"Your {fit} a known mistake. "
        if (count := len(self.mistakes)) > 1:
            known = f"Your {fit} {COUNTS.get(count, count)} known mistakes at once.\n"
        found = f"{known if self.mistake and self.diagnosis.startswith(self.mistake) else ''}{self.diagnosis}"
        return [*filter(None, [*found.split("\n"), self.also_wrong])]

    @property
    def mistakes(self) -> list[str]:
        """The sentences of the known mistakes that, together, give the same results."""
        return self.mistake.split("\n") if self.mistake else []

    def failing(self) -> tuple[list[tuple[str, list[CaseResult]]], str]:
        """Return the first failing cases with different messages by row, and a line about all further ones.

        A row is a public case, or all hidden cases with the same name and the number of passing ones. There are no rows
        while the cell is unchanged.
        """
        shown: list[tuple[str, list[CaseResult]]] = []
        others: list[str] = []
        messages: set[str] = set()
        more = 0
        for name, results in self._rows():
            wrong = [result for result in results if not result.passed]
            chosen = []
            for result in wrong:
                if len(messages) < MAX_FAILING_SHOWN and result.message not in messages:
                    messages.add(result.message)
                    chosen.append(result)
            more += len(wrong) - len(chosen)
            if chosen:
                shown.append((name, chosen))
            elif wrong:
                others.append(name)
        count = f"and {more} more fail{'s' if more == 1 else ''}" if more else ""
        return shown, f"{count}: {listed(others)}" if others else count

    def passing(self) -> str:
        """Return a line with the passing rows if there are several cases."""
        names = [name for name, results in self._rows() if all(result.passed for result in results)]
        return f"passes: {listed(names)}" if names and len(self.cases) > 1 else ""

    def _rows(self) -> list[tuple[str, list[CaseResult]]]:
        if not self.answered:
            return []
        rows = [(result.name, [result]) for result in self.cases if not result.hidden]
        by_name: dict[str, list[CaseResult]] = {}
        for result in self.cases:
            if result.hidden:
                by_name.setdefault(result.name, []).append(result)
        for name, results in by_name.items():
            rows.append((f"{HIDDEN}{name} ({sum(result.passed for result in results)} of {len(results)})", results))
        return rows

    @property
    def reckoning(self) -> str:
        """An explanation of lost points, such as "5 of 7 groups of cases pass: 2 of 3 points."."""
        passed, total = self.groups
        if self.passed or not self.answered or passed == total or self.table or len(self.cases) == 1:
            return ""
        if not passed and self.sentences and not any(case.passed for case in self.cases):
            return ""  # the sentence says why, and everything fails
        earned = f"{self.points:g} of {self.max_points} points."
        if total == 1:
            return f"All cases form one group, which fails: {earned}"
        public = [case.passed for case in self.cases if not case.hidden and not case.of]
        few = " and more than half of the public cases fail" if passed and 2 * sum(public) < len(public) else ""
        return f"{passed} of {total} groups of cases pass{few}: {earned}"

    @property
    def closing(self) -> str:
        """The last line, about the cases that grading adds."""
        if not self.to_come or not self.answered:
            return ""
        count, names = len(self.to_come), ", ".join(dict.fromkeys(self.to_come))
        cases, them = ("1 case", "it") if count == 1 else (f"{count} cases", "them")
        if self.table:
            return f"Grading measures again: {names}."
        shown = "" if self.held_back else f": `check({self.exercise}, hidden=True)` shows {them}"
        return f"Grading adds {cases} ({names}){shown}."

    @property
    def remarks(self) -> list[str]:
        """Details in small print: the points, the course's answers that were used, printed text, and cases that grading
        adds.
        """
        lines = [self.reckoning, stand_in_sentence(self.stand_ins), *self.notes, self.closing]
        return [*filter(None, lines)]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data; `from_json` reads it back."""
        data = {name: list(part) if isinstance(part, tuple) else part for name, part in asdict(self).items()}
        data["cases"] = [{k: v for k, v in case.items() if v or k != "values"} for case in data["cases"]]
        return {name: part for name, part in data.items() if part or name not in OMITTED_IF_EMPTY}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the report from the result of `to_json`; raise TypeError or KeyError for other data."""
        cases = tuple(CaseResult(**case) for case in data["cases"])
        lists = {name: tuple(part) for name, part in data.items() if isinstance(part, list)}
        lists["table"] = tuple(map(tuple, data.get("table", ())))
        return cls(**{**data, **lists, "cases": cases})


def listed(rows: Sequence[str]) -> str:
    """Return the names of rows in one line, hidden rows last; if there are many, the first names and a number."""
    public = [row for row in rows if not row.startswith(HIDDEN)]
    hidden = [row.removeprefix(HIDDEN) for row in rows if row.startswith(HIDDEN)]
    return "; ".join(filter(None, [_shortened(public), f"{HIDDEN}{_shortened(hidden)}" if hidden else ""]))


def _shortened(names: Sequence[str]) -> str:
    quoted = [f"“{name}”" if "," in re.sub(r"\(.*?\)", "", name) else name for name in names]
    count = len(quoted)
    while count > 1 and len(", ".join(quoted[:count])) > MAX_LIST_CHARS:
        count -= 1
    return ", ".join([*quoted[:count], *([f"and {len(names) - count} more"] if count < len(names) else [])])


def code_shown(results: Sequence[CaseResult]) -> Iterator[tuple[str, str]]:
    """Yield the code of each result, after a remark on the first lines that it shares with an earlier one."""
    earlier: list[tuple[str, list[str]]] = []
    for result in results:
        statements = _statements(result.call)
        shared = [(_shared(statements, others), name) for name, others in earlier]
        count, name = max(shared, key=lambda one: one[0], default=(0, ""))
        lines = sum(len(one.splitlines()) for one in statements[:count])
        if lines < MIN_LINES_SHARED:
            yield "", result.call
        else:
            yield f"The first {lines} lines of {name}, then:", "\n".join(statements[count:])
        earlier.append((result.name if '"' in result.name else f"“{result.name}”", statements))


def _statements(code: str) -> list[str]:
    """Return the lines of code; a line that continues the one before it is joined to it."""
    return re.split(r"\n(?![\s)\]}])", code)


def _shared(statements: Sequence[str], others: Sequence[str]) -> int:
    """Return how many statements at the beginning are the same in others, without the last one."""
    same = (a == b for a, b in zip(statements[:-1], others, strict=False))
    return len([*takewhile(bool, same)])


def stand_in_sentence(names: Sequence[str]) -> str:
    """If an answer was judged with the course's versions of earlier answers, return a sentence about it; otherwise
    ""."""
    listed = " and ".join(f"`{name}`" for name in names)
    return f"Judged with the course's own {listed} in place of yours." if names else ""
