"""The result of examining a notebook: reports, output of cells, and evidence; as JSON, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from lmcourse.report import Report
from lmcourse.text import collapse_whitespace, replace_unprintable, shorten

EvidenceKind = Literal[
    "file", "network", "process", "interpreter", "builtins", "protocol", "flood", "crash", "memory", "text"
]
EvidenceSource = Literal["seen", "told", "read"]

MAX_EVIDENCE_CHARS = 200
"""Characters of one sentence."""

MAX_EVIDENCE = 50
"""Pieces of evidence about one submission."""


@dataclass(frozen=True)
class Evidence:
    """One observation that may point to tampering.

    Attributes:
        kind: "file", "network" and "process": it reached for one outside its folder; "interpreter": it reached into
            Python or IPython itself; "builtins": it changed what every program relies on; "protocol": what it sent was
            no answer; "flood", "crash" and "memory": more than a notebook needs; "text": seen in its cells only.
        what: one sentence, with the cell where that is known.
        source: "seen" by the grader from outside; "told" by a hook in the notebook's own process, which the notebook
            can incriminate itself to but hardly avoid; "read" in its text, which may never have run.
    """

    kind: EvidenceKind
    what: str
    source: EvidenceSource

    def __post_init__(self) -> None:
        """Raises ValueError for a kind or a source that does not exist; shortens the sentence to one short line."""
        if self.kind not in get_args(EvidenceKind) or self.source not in get_args(EvidenceSource):
            raise ValueError(f"no such evidence: {self.kind!r}, {self.source!r}")
        line = collapse_whitespace(replace_unprintable(self.what))
        object.__setattr__(self, "what", shorten(line, MAX_EVIDENCE_CHARS))

    def to_json(self) -> dict[str, str]:
        """Plain data; `Evidence(**data)` reads it back."""
        return {"kind": self.kind, "what": self.what, "source": self.source}


def distinct_evidence(found: list[Evidence]) -> tuple[Evidence, ...]:
    """Each piece once, in order, and not more than `MAX_EVIDENCE`."""
    return tuple(dict.fromkeys(found))[:MAX_EVIDENCE]


def evidence_from_json(data: Any) -> tuple[Evidence, ...]:
    """Evidence from `to_json`.

    Raises:
        ValueError, TypeError, KeyError: the data is something else.
    """
    return distinct_evidence([Evidence(str(one["kind"]), str(one["what"]), str(one["source"])) for one in data])  # type: ignore[arg-type]


@dataclass(frozen=True)
class CellRun:
    """Output and error of one code cell.

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
    """Result of examining one notebook.

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
            evidence_from_json(data["evidence"]),
            float(data["seconds"]),
        )
