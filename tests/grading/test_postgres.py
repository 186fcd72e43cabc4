"""A gradebook on a PostgreSQL server: plain nbgrader's commands with `--db`, and the same marks as in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import nbformat
import pytest

from tests.grading.postgres import Server, find_programs, running_server
from tests.grading.tiny_course import ASSIGNMENT, Course, Submission

MARKS = {"ada": {"one": 2.0, "two": 2.0, "three": 2.0}, "bob": {"one": 2.0, "two": 0.5, "three": 0.0}}


@pytest.fixture(scope="module")
def server(in_ci: bool) -> Iterator[Server]:
    """A PostgreSQL server. Without one a person's run skips these tests; CI's fails."""
    programs = find_programs()
    if programs is None:
        missing = "there is no PostgreSQL server (on Debian and Ubuntu: apt install postgresql)"
        if in_ci:
            pytest.fail(f"The tests of PostgreSQL cannot run: {missing}")
        pytest.skip(f"The tests of PostgreSQL are left out: {missing}")
    with running_server(programs) as server:
        yield server


def marks_in(db_url: str, assignment: str) -> dict[str, dict[str, float]]:
    """What a gradebook holds: points by student and exercise."""
    from nbgrader.api import Gradebook

    with Gradebook(db_url) as book:
        return {
            submission.student.id: {
                grade.name.removeprefix("check_"): grade.score
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in book.assignment_submissions(assignment)
        }


@dataclass(frozen=True)
class Graded:
    """A class whose marks are in one gradebook."""

    course: Course
    db_url: str

    def nbgrader(self, *command: str) -> None:
        ran = self.course.nbgrader(*command, "--db", self.db_url)
        assert ran.returncode == 0, ran.stderr


def graded(course: Course, db_url: str) -> Graded:
    """Two students, graded by plain nbgrader."""
    made = Graded(course, db_url)
    made.nbgrader("generate_assignment", ASSIGNMENT)
    release = nbformat.read(course.release, as_version=4)
    course.submit("ada", Submission(release).nb)
    bob = Submission(release)
    bob.returns("two", "0.5")
    bob.returns("three", "1 / 0")
    course.submit("bob", bob.nb)
    made.nbgrader("autograde", ASSIGNMENT, "--ExamineNotebook.isolation=process")
    return made


@pytest.fixture(scope="module")
def on_server(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return graded(Course(tmp_path_factory.mktemp("server").resolve()), server.new_database())


def test_marks_on_a_server_equal_those_in_a_file(on_server: Graded, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("file").resolve()
    in_file = graded(Course(root), f"sqlite:///{root}/gradebook.db")
    assert marks_in(on_server.db_url, ASSIGNMENT) == marks_in(in_file.db_url, ASSIGNMENT) == MARKS


def test_nothing_of_it_is_in_a_file(on_server: Graded) -> None:
    assert not list(on_server.course.root.rglob("*.db"))


def test_feedback_and_export_read_the_server(on_server: Graded) -> None:
    on_server.nbgrader("generate_feedback", ASSIGNMENT)
    assert "0.5" in on_server.course.feedback("bob")
    on_server.nbgrader("export", "--to", "grades.csv")
    rows = (on_server.course.root / "grades.csv").read_text().splitlines()
    assert len(rows) == 1 + len(MARKS)
    for student, row in zip(sorted(MARKS), sorted(rows[1:]), strict=True):
        assert student in row
