"""Test the table of a term that nbgrader exports."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from lmcourse.grading.gradebook import nbgrader_configuration
from tests.grading.conftest import Course
from tests.grading.learners import REPOSITORY

pytestmark = pytest.mark.prove


def test_term_table_has_a_row_per_learner_and_a_total(tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    course = Course(tmp_path.resolve())
    (tmp_path / "solutions").mkdir()
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    nbgrader_configuration(course.root)  # finds alembic, which creates gradebooks
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db", "lmcourse") as book:
        for name, points in (("01-one", 4), ("02-two", 6), ("=A1", 0)):
            book.add_assignment(name)
            book.add_notebook("work", name)
            book.add_grade_cell("check_one", "work", name, max_score=points, cell_type="code")
        for student in ("ada", "bob", "eve"):
            book.add_student(student, last_name=f"={student}", first_name="A, B")
        earned = {("01-one", "ada"): (3.5, 1.0), ("02-two", "ada"): (6, None), ("01-one", "bob"): (0.5, 2.0)}
        for (assignment, student), (score, penalty) in earned.items():
            submission = book.add_submission(assignment, student)
            submission.notebooks[0].late_submission_penalty = penalty
            book.find_grade("check_one", "work", assignment, student).auto_score = score
        book.db.commit()
    exporter = "--exporter=lmcourse.grading.export.TermTable"
    course.run("nbgrader", "export", exporter, "--to", "term.csv")
    with (tmp_path / "term.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert list(columns)[:3] == ["student_id", "last_name", "first_name"]
    assert list(columns)[-2:] == ["total", "max_score"]
    assert columns == {
        "student_id": ("ada", "bob", "eve"),
        "last_name": ("'=ada", "'=bob", "'=eve"),
        "first_name": ("A, B", "A, B", "A, B"),
        "01-one": ("2.5", "0", ""),  # bob's penalty is larger than his score, and eve did not hand in a notebook
        "02-two": ("6", "", ""),
        "'=A1": ("", "", ""),
        "total": ("8.5", "0", "0"),
        "max_score": ("10", "10", "10"),
    }
    said = course.run("nbgrader", "export", exporter, "--to", "term.csv/no.csv", rc=1)
    assert "cannot be written" in said
