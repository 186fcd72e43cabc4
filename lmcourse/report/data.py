"""The result of checking one exercise as plain data, which can be stored as JSON, and the id of the cell that holds
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

CHECK_PREFIX = "check_"
"""Prefix of the nbgrader id of a check cell; the exercise's name follows."""


def check_id(exercise: str) -> str:
    """The id of the cell that checks an exercise, for Jupyter and for nbgrader."""
    return f"{CHECK_PREFIX}{exercise}"


REPORT_MIME = "application/vnd.lmcourse.report+json"
"""The MIME type of a report's JSON in a notebook cell's output."""

MAX_FAILING_SHOWN = 3
"""Most failing cases that a report shows with their calls; it counts the others."""

MAX_LIST_CHARS = 160
"""Most characters of a list of names; it counts the omitted names."""

HIDDEN = "hidden: "
"""The beginning of the row of hidden cases of one name."""

OMITTED_IF_EMPTY = ("besides", "notices", "hints", "stand_ins", "held_back")
"""Fields that the JSON of a report omits if they are empty."""


@dataclass(frozen=True)
class CaseResult:
    """Result of one case: its name, whether it passed, what differed, the call, and whether only grading runs it.

    `of` is the name of the case that it is derived from.
    """

    name: str
    passed: bool
    message: str = ""
    call: str = ""
    hidden: bool = False
    of: str = ""


@dataclass(frozen=True)
class ReportData:
    """The result of checking one exercise: cases, points, diagnosis.

    Attributes:
        exercise: its name.
        points, max_points: earned and possible.
        hidden: whether hidden cases were judged too, as they are for a grade.
        cases: the results, public cases first.
        diagnosis: what seems to be wrong, if the course recognises it.
        mistake: the sentence of the known mistake that gives the same results; empty if none was recognised.
        besides: the failing cases that the known mistake does not explain, in a sentence.
        notices: what to know before reading the report, such as that the last version of the answer did not run.
        groups: the groups of cases that pass, and all.
        notes: what the code printed or warned of.
        hints: from a nudge to nearly the answer; only if the answer does not pass.
        to_come: the names of the cases that only grading runs.
        answered: False while the cell is as it was handed out.
        stand_ins: the earlier exercises whose printed solutions took the learner's place while this one was judged.
        held_back: whether the hidden cases are not on this machine: a teacher's own exercise.
    """

    exercise: str
    points: float
    max_points: int
    hidden: bool
    cases: tuple[CaseResult, ...]
    diagnosis: str = ""
    mistake: str = ""
    besides: str = ""
    notices: tuple[str, ...] = ()
    groups: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    to_come: tuple[str, ...] = ()
    answered: bool = True
    stand_ins: tuple[str, ...] = ()
    held_back: bool = False

    @property
    def passed(self) -> bool:
        """True if every case passed and no rule was broken."""
        return self.points == self.max_points

    @property
    def sentences(self) -> list[str]:
        """Return what is wrong in words: the diagnosis, and other failing cases."""
        return [*filter(None, [self.diagnosis, self.besides])]

    def failing(self) -> tuple[list[tuple[str, list[CaseResult]]], str]:
        """Return the first failing cases with different messages by row, and a line that counts and names the others.

        A row is a public case, or all hidden cases of one name with a count of those that pass. There are none while
        the cell is as it was handed out.
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
        """Return a line with the rows that pass, if there are several cases."""
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
        """An explanation of missing points: "5 of 7 groups of cases pass: 2 of 3 points."."""
        passed, total = self.groups
        if self.passed or not self.answered or passed in (0, total):
            return ""
        public = [case.passed for case in self.cases if not case.hidden and not case.of]
        few = " and more than half of the public cases fail" if 2 * sum(public) < len(public) else ""
        return f"{passed} of {total} groups of cases pass{few}: {self.points:g} of {self.max_points} points."

    @property
    def closing(self) -> str:
        """The last line: the cases that grading adds."""
        if not self.to_come or not self.answered:
            return ""
        count, names = len(self.to_come), ", ".join(dict.fromkeys(self.to_come))
        cases, them = ("1 case", "it") if count == 1 else (f"{count} cases", "them")
        shown = "" if self.held_back else f": `check({self.exercise}, hidden=True)` shows {them}"
        return f"Grading adds {cases} ({names}){shown}."

    @property
    def remarks(self) -> list[str]:
        """The small print: the points, the answers of the course that were used, printed text, the cases that
        grading adds.
        """
        lines = [self.reckoning, stand_in_sentence(self.stand_ins), *self.notes, self.closing]
        return [*filter(None, lines)]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data; `from_json` reads it back."""
        data = {name: list(part) if isinstance(part, tuple) else part for name, part in asdict(self).items()}
        return {name: part for name, part in data.items() if part or name not in OMITTED_IF_EMPTY}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Make a report from the result of `to_json`.

        Raises:
            TypeError, KeyError: the data is something else.
        """
        cases = tuple(CaseResult(**case) for case in data["cases"])
        lists = {name: tuple(part) for name, part in data.items() if isinstance(part, list)}
        return cls(**{**data, **lists, "cases": cases})


def listed(rows: Sequence[str]) -> str:
    """Return the names of rows in a line, hidden ones last; if there are many, the first ones and the number of
    others.
    """
    public = [row for row in rows if not row.startswith(HIDDEN)]
    hidden = [row.removeprefix(HIDDEN) for row in rows if row.startswith(HIDDEN)]
    return "; ".join(filter(None, [_shortened(public), f"{HIDDEN}{_shortened(hidden)}" if hidden else ""]))


def _shortened(names: Sequence[str]) -> str:
    quoted = [f"“{name}”" if "," in re.sub(r"\(.*?\)", "", name) else name for name in names]
    count = len(quoted)
    while count > 1 and len(", ".join(quoted[:count])) > MAX_LIST_CHARS:
        count -= 1
    return ", ".join([*quoted[:count], *([f"and {len(names) - count} more"] if count < len(names) else [])])


def stand_in_sentence(names: Sequence[str]) -> str:
    """Return a sentence on an answer that was judged with the course's earlier answers, or an empty text."""
    listed = " and ".join(f"`{name}`" for name in names)
    return f"Judged with the course's own {listed} in place of yours." if names else ""
