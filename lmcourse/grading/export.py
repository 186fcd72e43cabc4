"""`nbgrader export`: tables of grades, in which no name is a formula and none breaks a row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin

from lmcourse.grading.lms import without_formulas

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
                rows = csv.writer(file, lineterminator="\n")
                rows.writerows([_cell(value) for value in row] for row in self.rows(gradebook))
            new.replace(path)
        except OSError as error:
            raise SystemExit(f"The grades cannot be written to {path}: {error.strerror}.") from error
        finally:
            new.unlink(missing_ok=True)

    def rows(self, gradebook: Any) -> Iterator[Row]:
        """Yield the header, then a row for each assignment and student; 0 points if nothing was handed in."""
        yield [
            *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
            *("raw_score", "late_submission_penalty", "score", "max_score"),
        ]
        for assignment in self.assignments(gradebook):
            submissions = {each.student.id: each for each in assignment.submissions}
            for student in self.students(gradebook):
                got = submissions.get(student.id)
                yield [
                    *(assignment.name, assignment.duedate, got.timestamp if got else None),
                    *(student.id, student.last_name, student.first_name, student.email),
                    *((got.score, got.late_submission_penalty) if got else (0.0, 0.0)),
                    *(_score(got) if got else 0.0, assignment.max_score),
                ]

    def assignments(self, gradebook: Any) -> list[Any]:
        """Return the assignments of `--assignment`, or all."""
        wanted = set(map(str, self.assignment))
        return [one for one in gradebook.assignments if not wanted or one.name in wanted]

    def students(self, gradebook: Any) -> list[Any]:
        """Return the students of `--student`, or all."""
        wanted = set(map(str, self.student))
        return [one for one in gradebook.students if not wanted or one.id in wanted]


class TermTable(SafeCsvExportPlugin):
    """A table of a term: a row for each learner, a column for each assignment, the total and the maximum.

    A cell is the score after the late penalty; it is empty if nothing was handed in.
    """

    def rows(self, gradebook: Any) -> Iterator[Row]:
        """Yield the header, then a row for each student."""
        assignments = self.assignments(gradebook)
        assignments.sort(key=lambda one: str(one.name))
        yield ["student_id", "last_name", "first_name", *(one.name for one in assignments), "total", "max_score"]
        scores = [{each.student.id: _score(each) for each in one.submissions} for one in assignments]
        most = sum(one.max_score for one in assignments)
        for student in sorted(self.students(gradebook), key=lambda one: str(one.id)):
            points = [score.get(student.id) for score in scores]
            total = sum(filter(None, points), 0.0)
            yield [student.id, student.last_name, student.first_name, *points, total, most]


def _score(submission: Any) -> float:
    """Return the score after the late penalty, as nbgrader does."""
    return max(0.0, float(submission.score) - (submission.late_submission_penalty or 0.0))


def _cell(value: Any) -> Any:
    """Return a value as it is written: numbers and dates as they are, no text as a formula."""
    return without_formulas(value) if isinstance(value, str) else value
