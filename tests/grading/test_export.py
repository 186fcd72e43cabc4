"""`nbgrader export`: tables of grades that no spreadsheet calculates, and one for a whole term."""

from __future__ import annotations

import csv
from pathlib import Path

from lmcourse.grading.config import nbgrader_configuration
from tests.grading.tiny_course import Course

NAMES = ("=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "a;=1")
"""Each would be calculated."""

HARMLESS = ("ada", "a,b", 'a"b', "a-b", "o=o")


def test_no_name_is_a_formula_or_breaks_a_row(tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    course = Course(tmp_path.resolve())
    nbgrader_configuration(course.root)  # finds what a gradebook is made with
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db", "lmcourse") as book:
        book.add_assignment("=A1", duedate="2026-01-02 03:04:05 UTC")
        for name in (*NAMES, *HARMLESS):
            book.add_student(name, first_name=name, last_name=name, email=name)
        book.add_submission("=A1", "ada", timestamp="2026-01-01 00:00:00 UTC")
    ran = course.nbgrader("export", "--to", "some.csv")
    assert ran.returncode == 0, ran.stderr
    with (tmp_path / "some.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(NAMES) + len(HARMLESS)
    for column in ("student_id", "last_name", "first_name", "email"):
        expected = {"'=1+1", "'+1+1", "'-2+3", "'@SUM(A1)", "'=1", "'＝1", "a;'=1", *HARMLESS}
        assert {row[column] for row in rows} == expected
    assert {row["assignment"] for row in rows} == {"'=A1"}
    assert [row["timestamp"] for row in rows if row["student_id"] == "ada"] == ["2026-01-01 00:00:00"]
    assert {(row["duedate"], row["raw_score"], row["score"], row["max_score"]) for row in rows} == {
        ("2026-01-02 03:04:05", "0.0", "0.0", "0.0")
    }
    assert list(tmp_path.glob(".some*")) == []


def test_export_is_limited_to_a_student_and_an_assignment(tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    course = Course(tmp_path.resolve())
    nbgrader_configuration(course.root)
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db", "lmcourse") as book:
        for name in ("ada", "bob"):
            book.add_assignment(f"of-{name}")
            book.add_student(name)
    ran = course.nbgrader("export", "--assignment", "['of-ada']", "--student", "['bob']")
    assert ran.returncode == 0, ran.stderr
    refused = course.nbgrader("export", "--to", "no/such/folder.csv")
    assert refused.returncode != 0
    assert refused.stderr.splitlines()[-1] == (
        "The grades cannot be written to no/such/folder.csv: No such file or directory."
    )
    lines = (tmp_path / "grades.csv").read_text().splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [["of-ada", "", "", "bob"]]


def test_term_table_has_a_row_per_learner_and_a_total(tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    course = Course(tmp_path.resolve())
    nbgrader_configuration(course.root)
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
    ran = course.nbgrader("export", "--exporter=lmcourse.grading.export.TermTable", "--to", "term.csv")
    assert ran.returncode == 0, ran.stderr
    with (tmp_path / "term.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert list(columns)[:3] == ["student_id", "last_name", "first_name"]
    assert list(columns)[-2:] == ["total", "max_score"]
    assert columns == {
        "student_id": ("ada", "bob", "eve"),
        "last_name": ("'=ada", "'=bob", "'=eve"),
        "first_name": ("A, B", "A, B", "A, B"),
        "01-one": ("2.5", "0.0", ""),  # bob's penalty is larger than his score; eve handed in nothing
        "02-two": ("6.0", "", ""),
        "'=A1": ("", "", ""),
        "total": ("8.5", "0.0", "0.0"),
        "max_score": ("10.0", "10.0", "10.0"),
    }
