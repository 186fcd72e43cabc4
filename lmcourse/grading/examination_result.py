"""What an examination gave: the reports that make the marks, and what is told beside them. It travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmcourse.grading.evidence import Evidence, read_evidence
from lmcourse.report import Report


@dataclass(frozen=True)
class CellRun:
    """What running one code cell gave.

    Attributes:
        run: False if the cell was not run: it only shows something, it is no Python, or what came before ended Python.
        printed: what it wrote, shortened.
        failure: the error it ended with, in one line, or nothing.
    """

    run: bool = False
    printed: str = ""
    failure: str = ""


@dataclass(frozen=True)
class ExaminationResult:
    """What came of one notebook.

    Attributes:
        reports: by exercise, as `check(..., hidden=True)` would have given them to honest work.
        cells: one for each code cell that was handed over, in order.
        problem: what is wrong with the notebook as a whole, in one sentence, or nothing.
        evidence: what honest work does not do.
        seconds: how long it took, by the grader's clock.
    """

    reports: dict[str, Report]
    cells: tuple[CellRun, ...] = ()
    problem: str = ""
    evidence: tuple[Evidence, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {
            "reports": {name: report.to_json() for name, report in self.reports.items()},
            "cells": [{"run": cell.run, "printed": cell.printed, "failure": cell.failure} for cell in self.cells],
            "problem": self.problem,
            "evidence": [one.to_json() for one in self.evidence],
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExaminationResult:
        """The examination that `to_json` told.

        Raises:
            ValueError, TypeError, KeyError: the data is something else.
        """
        return cls(
            {str(name): Report.from_json(report) for name, report in data["reports"].items()},
            tuple(CellRun(bool(cell["run"]), str(cell["printed"]), str(cell["failure"])) for cell in data["cells"]),
            str(data["problem"]),
            read_evidence(data["evidence"]),
            float(data["seconds"]),
        )
