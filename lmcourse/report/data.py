"""The result of checking one exercise as plain data, which travels as JSON, and the id of the cell that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

CHECK_PREFIX = "check_"
"""What the nbgrader id of a check cell starts with; the exercise's name follows."""


def check_id(exercise: str) -> str:
    """The id of the cell that checks an exercise, for Jupyter and for nbgrader."""
    return f"{CHECK_PREFIX}{exercise}"


REPORT_MIME = "application/vnd.lmcourse.report+json"
"""The MIME type under which a report's JSON lies in a notebook cell's output."""

MAX_FAILING_SHOWN = 2
"""Failing cases that a row shows; of the others it gives the number."""


@dataclass(frozen=True)
class CaseResult:
    """Result of one case: its name, whether it passed, what differed, the call, and whether only grading runs it."""

    name: str
    passed: bool
    message: str = ""
    call: str = ""
    hidden: bool = False


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
        groups: the groups of cases that pass, and all.
        notes: what the code printed or warned of.
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
    groups: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    to_come: tuple[str, ...] = ()
    answered: bool = True
    stand_ins: tuple[str, ...] = ()
    held_back: bool = False

    @property
    def passed(self) -> bool:
        """Whether every case passed and no rule was broken."""
        return self.points == self.max_points

    def rows(self) -> list[tuple[str, bool, list[CaseResult]]]:
        """Return the rows a reader sees: each public case, then the hidden cases by name with a count.

        There are none while the cell is as it was handed out.
        """
        if not self.answered:
            return []
        rows = [(result.name, result.passed, [result]) for result in self.cases if not result.hidden]
        by_name: dict[str, list[CaseResult]] = {}
        for result in self.cases:
            if result.hidden:
                by_name.setdefault(result.name, []).append(result)
        for name, results in by_name.items():
            right = sum(result.passed for result in results)
            rows.append((f"hidden: {name} ({right} of {len(results)})", right == len(results), results))
        return rows

    @property
    def reckoning(self) -> str:
        """How the points come about, where not all are earned: "5 of 7 groups of cases pass: 2 of 3 points."."""
        passed, total = self.groups
        if self.passed or not self.answered or passed == total or total < 2:
            return ""
        public = [case.passed for case in self.cases if not case.hidden]
        few = " and more than half of the public cases fail" if 2 * sum(public) < len(public) else ""
        return f"{passed} of {total} groups of cases pass{few}: {self.points:g} of {self.max_points} points."

    @property
    def closing(self) -> str:
        """The last line: what grading adds."""
        if not self.to_come or not self.answered:
            return ""
        count, names = len(self.to_come), ", ".join(dict.fromkeys(self.to_come))
        cases = "1 more case" if count == 1 else f"{count} more cases"
        shown = "" if self.held_back else f": `check({self.exercise}, hidden=True)` shows them"
        return f"Grading runs {cases} ({names}){shown}."

    @property
    def remarks(self) -> list[str]:
        """The lines below the diagnosis: what else fails, how points came about, whose answers stood in, the output."""
        return [*filter(None, [self.besides, self.reckoning, stand_in_sentence(self.stand_ins)]), *self.notes]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, without an empty `stand_ins` or a false `held_back`; `from_json` reads it back."""
        data = asdict(self)
        data |= {name: list(data[name]) for name in ("cases", "groups", "notes", "to_come", "stand_ins")}
        return {name: part for name, part in data.items() if part or name not in ("stand_ins", "held_back")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """A report from what `to_json` gave.

        Raises:
            TypeError, KeyError: the data is something else.
        """
        cases = tuple(CaseResult(**case) for case in data["cases"])
        lists = {name: tuple(data[name]) for name in ("groups", "notes", "to_come", "stand_ins") if name in data}
        return cls(**{**data, **lists, "cases": cases})


def failing_shown(results: Sequence[CaseResult]) -> tuple[list[CaseResult], str]:
    """Return the failing cases of a row that a report shows, and a line that counts the others."""
    failing = [result for result in results if not result.passed]
    more = len(failing) - MAX_FAILING_SHOWN
    return failing[:MAX_FAILING_SHOWN], f"and {more} more fail{'s' if more == 1 else ''}" if more > 0 else ""


def stand_in_sentence(names: Sequence[str]) -> str:
    """What is said of an answer that was judged with the course's answers to earlier exercises; nothing without any."""
    listed = " and ".join(f"`{name}`" for name in names)
    return f"Judged with the course's own {listed} in place of yours." if names else ""
