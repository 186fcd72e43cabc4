"""A table of all grades of a term: `nbgrader export --exporter=lmcourse.grading.export.TermTable --to term.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.base.text import csv_text


class TermTable(ExportPlugin):  # type: ignore[misc]
    """A table with a row for each learner and columns for assignments, total and maximum; it contains no formulas.

    A cell has the score after the late penalty; it is empty if the learner did not hand in a notebook.
    """

    def export(self, gradebook: Any) -> None:
        """Write the table to `self.to`, or `grades.csv`; raise SystemExit if it cannot be written."""
        chosen, students = (set(map(str, each)) for each in (self.assignment, self.student))
        assignments = sorted((one for one in gradebook.assignments if not chosen or one.name in chosen), key=_name)
        header = ["student_id", "last_name", "first_name", *map(_name, assignments), "total", "max_score"]
        scores = [{each.student.id: _score(each) for each in one.submissions} for one in assignments]
        most, rows = sum(one.max_score for one in assignments), []
        for one in sorted(gradebook.students, key=lambda student: str(student.id)):
            if not students or one.id in students:
                points = [score.get(one.id, "") for score in scores]
                total = sum(score.get(one.id, 0.0) for score in scores)
                rows.append([one.id, one.last_name or "", one.first_name or "", *points, total, most])
        try:
            write_all({Path(self.to or "grades.csv"): csv_text(header, rows)}, newline="")
        except CourseError as error:
            raise SystemExit(str(error)) from error


def _name(assignment: Any) -> str:
    return str(assignment.name)


def _score(submission: Any) -> float:
    return max(0.0, float(submission.score) - (submission.late_submission_penalty or 0.0))
