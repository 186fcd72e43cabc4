"""What a check found, for three readers: a learner, a terminal or screen reader, and nbgrader.

nbgrader takes partial credit from the text of a graded cell's last value, so the `repr` of a report is the bare number
of points. A notebook shows its HTML; the same facts travel along as JSON, from which feedback is drawn afresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MIME = "application/vnd.lmcourse.report+json"


@dataclass(frozen=True)
class CaseResult:
    """One case: its name (a category, if it is hidden), whether it passed, what differed, and the call."""

    name: str
    passed: bool
    message: str = ""
    call: str = ""
    hidden: bool = False


@dataclass(frozen=True, repr=False)
class Report:
    """The result of checking one exercise.

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

    def __repr__(self) -> str:
        return f"{self.points:g}"

    def __float__(self) -> float:
        return self.points

    def __str__(self) -> str:
        """The report as plain text."""
        lines = [f"{self.exercise}   {self.points:g} / {self.max_points} points"]
        for name, passed, results in self.groups():
            lines.append(f"{'✓' if passed else '✗'} {name}")
            lines += [
                f"    {text}" for result in results if not passed for text in (result.call, result.message) if text
            ]
        if self.diagnosis:
            lines.append(f"→ {self.diagnosis}")
        lines += [f"· {note}" for note in self.notes]
        if self.closing:
            lines.append(self.closing)
        return "\n".join(lines)

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
        return (
            data
            | {"cases": [asdict(case) for case in self.cases], "notes": list(self.notes)}
            | {"to_come": list(self.to_come)}
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """A report from what `to_json` gave.

        Raises:
            TypeError, KeyError: the data is something else.
        """
        cases = tuple(CaseResult(**case) for case in data["cases"])
        return cls(**{**data, "cases": cases, "notes": tuple(data["notes"]), "to_come": tuple(data["to_come"])})

    def _repr_html_(self) -> str:
        from lmcourse.exercises.report_html import html

        return html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {MIME: self.to_json()}
