"""`nbgrader export`: nbgrader's table of grades, in which no name is a formula and none breaks a row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin

from lmcourse.grading.class_report.tables import without_formulas

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
"""Those of nbgrader's own exporter, in its order."""

Row = list[Any]


class SafeCsvExportPlugin(ExportPlugin):  # type: ignore[misc]
    """The table that nbgrader's `CsvExportPlugin` writes, as CSV that a spreadsheet reads and never calculates."""

    def export(self, gradebook: Any) -> None:
        """Write the table to `self.to`, or `grades.csv`.

        Raises:
            SystemExit: the file cannot be written.
        """
        path = Path(self.to or "grades.csv")
        new = path.with_name(f".{path.name}.{os.getpid()}.new")
        self.log.info("Exporting grades to %s", path)
        try:
            with new.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows([_cell(value) for value in row] for row in self._rows(gradebook))
            new.replace(path)
        except OSError as error:
            raise SystemExit(f"The grades cannot be written to {path}: {error.strerror}.") from error
        finally:
            new.unlink(missing_ok=True)

    def _rows(self, gradebook: Any) -> Iterator[Row]:
        """A row for each assignment and each student; 0 points for whoever handed in nothing."""
        wanted, students = set(map(str, self.assignment)), set(map(str, self.student))
        for assignment in gradebook.assignments:
            if not wanted or assignment.name in wanted:
                for student in gradebook.students:
                    if not students or student.id in students:
                        yield _row(gradebook, assignment, student)


def _row(gradebook: Any, assignment: Any, student: Any) -> Row:
    from nbgrader.api import MissingEntry

    timestamp, raw, penalty = None, 0.0, 0.0
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        pass
    else:
        timestamp, raw, penalty = submission.timestamp, submission.score, submission.late_submission_penalty
    who = (student.id, student.last_name, student.first_name, student.email)
    points = (raw, penalty, max(0.0, raw - (penalty or 0.0)), assignment.max_score)
    return [assignment.name, assignment.duedate, timestamp, *who, *points]


def _cell(value: Any) -> Any:
    """A value as it stands in the table: numbers and dates as they are, no text as a formula."""
    return without_formulas(value) if isinstance(value, str) else value
