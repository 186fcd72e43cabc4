"""The result of checking one exercise as plain data, which travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

REPORT_MIME = "application/vnd.lmcourse.report+json"
"""The MIME type under which a report's JSON lies in a notebook cell's output."""


@dataclass(frozen=True)
class CaseResult:
    """Result of one case: its name (a category, if it is hidden), whether it passed, what differed, and the call."""

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
        diagnosis: one sentence on what seems to be wrong, if the course recognises it.
        notes: what the code printed or warned of.
        to_come: categories of hidden cases that are judged only when the notebook is graded.
        answered: False while the cell is as it was handed out.
        stand_ins: the earlier exercises for which the course's own answers stood in while this one was judged.
    """

    exercise: str
    points: float
    max_points: int
    hidden: bool
    cases: tuple[CaseResult, ...]
    diagnosis: str = ""
    notes: tuple[str, ...] = ()
    to_come: tuple[str, ...] = ()
    answered: bool = True
    stand_ins: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every case passed and no rule was broken."""
        return self.points == self.max_points

    def groups(self) -> list[tuple[str, bool, list[CaseResult]]]:
        """The rows a reader sees: each public case, then the hidden cases by category with a count.

        There are none while the cell is as it was handed out.
        """
        if not self.answered:
            return []
        rows = [(result.name, result.passed, [result]) for result in self.cases if not result.hidden]
        categories: dict[str, list[CaseResult]] = {}
        for result in self.cases:
            if result.hidden:
                categories.setdefault(result.name, []).append(result)
        for category, results in categories.items():
            right = sum(result.passed for result in results)
            rows.append((f"hidden: {category} ({right} of {len(results)})", right == len(results), results))
        return rows

    @property
    def closing(self) -> str:
        """The last line: what is still to come."""
        if not self.to_come or not self.answered:
            return ""
        kinds = ", ".join(self.to_come)
        return f"Hidden checks ({kinds}) run when this notebook is graded."

    @property
    def remarks(self) -> list[str]:
        """The lines below the diagnosis: whose answers stood in, and what the code printed."""
        return [*filter(None, [stand_in_sentence(self.stand_ins)]), *self.notes]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, with `stand_ins` only where there are some; `from_json` reads it back."""
        data = asdict(self)
        data |= {name: list(data[name]) for name in ("cases", "notes", "to_come", "stand_ins")}
        return data if self.stand_ins else {name: part for name, part in data.items() if name != "stand_ins"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """A report from what `to_json` gave.

        Raises:
            TypeError, KeyError: the data is something else.
        """
        cases = tuple(CaseResult(**case) for case in data["cases"])
        lists = {name: tuple(data[name]) for name in ("notes", "to_come", "stand_ins") if name in data}
        return cls(**{**data, **lists, "cases": cases})


def stand_in_sentence(names: Sequence[str]) -> str:
    """What is said of an answer that was judged with the course's answers to earlier exercises; nothing without any."""
    listed = " and ".join(f"`{name}`" for name in names)
    return f"Judged with the course's own {listed} in place of yours." if names else ""
