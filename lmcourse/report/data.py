"""The result of checking one exercise as plain data, which travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
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

    def to_json(self) -> dict[str, Any]:
        """The report as plain data; `from_json` reads it back."""
        data = asdict(self)
        return data | {name: list(data[name]) for name in ("cases", "notes", "to_come")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """A report from what `to_json` gave.

        Raises:
            TypeError, KeyError: the data is something else.
        """
        cases = tuple(CaseResult(**case) for case in data["cases"])
        return cls(**{**data, "cases": cases, "notes": tuple(data["notes"]), "to_come": tuple(data["to_come"])})
