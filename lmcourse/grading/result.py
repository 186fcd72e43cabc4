"""What grading one submission gave."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.evidence import Evidence, read_evidence
from lmcourse.grading.notes import KEY
from lmcourse.grading.reasons import reason
from lmcourse.grading.reports import reports_in
from lmcourse.report import CHECK_PREFIX, Report


@dataclass(frozen=True)
class Result:
    """One submission: its points, and a sentence its author can act on.

    Attributes:
        student: the name of their folder; "me" for a learner's own notebook.
        assignment: its id, as in "01-floating-point"; empty if the notebook was not recognised.
        score, max_score: points earned and possible.
        exercises: points by exercise.
        reason: why it is not more, or that every check passed.
        seed: of the hidden cases; `LMCOURSE_SEED` set to it repeats the run.
        evidence: what honest work does not do; it changes no mark.
        reports: by exercise, those that there are.
        answers: a digest of the answers, alike for answers that differ in comments and spaces only; empty if there is
            no answer.
    """

    student: str
    assignment: str
    score: float
    max_score: float
    exercises: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seed: int | None = None
    evidence: tuple[Evidence, ...] = ()
    reports: dict[str, Report] = field(default_factory=dict, repr=False)
    answers: str = ""

    def to_json(self) -> dict[str, Any]:
        """The result as plain data for `lmcourse grade --json`."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "score": self.score,
            "max_score": self.max_score,
            "exercises": dict(self.exercises),
            "reason": self.reason,
            "evidence": [one.to_json() for one in self.evidence],
        }


def result_of(
    student: str, assignment: str, graded: NotebookNode, points: Mapping[str, float], possible: Mapping[str, float]
) -> Result:
    """The result of a submission that went through nbgrader.

    Args:
        student, assignment: whose, and of what.
        graded: the notebook as autograding left it.
        points, possible: earned and most points by graded cell.
    """
    earned, most = _by_exercise(points), _by_exercise(possible)
    notes = graded.metadata.get(KEY, {})
    reports = reports_in(graded)
    return Result(
        student,
        assignment,
        sum(earned.values()),
        sum(most.values()),
        {name: earned[name] for name in most},
        reason(graded, earned, most),
        notes.get("seed"),
        read_evidence(notes.get("evidence", [])),
        reports,
        _digest(graded) if any(report.answered for report in reports.values()) else "",
    )


def nothing(student: str, assignment: str, possible: Mapping[str, float], why: str) -> Result:
    """The result of a submission that could not be graded."""
    most = _by_exercise(possible)
    return Result(student, assignment, 0.0, sum(most.values()), dict.fromkeys(most, 0.0), why)


def _by_exercise(points: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(CHECK_PREFIX): value for name, value in points.items()}


def _digest(graded: NotebookNode) -> str:
    answers = [
        _without_comments(cell.source)
        for cell in graded.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    ]
    return hashlib.sha256("\0".join(answers).encode("utf-8", "replace")).hexdigest()


def _without_comments(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
