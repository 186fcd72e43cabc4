"""Record a class again: unchanged and changed submissions, and one exercise again for the whole class."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from tests.grading.conftest import Course, needs_bubblewrap
from tests.grading.learners import ASSIGNMENT, NAME, Learner

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(2400)]


def graded_at(course: Course) -> dict[str, int]:
    """Return the time at which each graded notebook was written."""
    found = (course.root / "autograded").glob(f"*/{ASSIGNMENT}/{NAME}")
    return {path.parts[-3]: path.stat().st_mtime_ns for path in found}


def test_unchanged_work_is_not_graded_again_by_either_command(course: Course) -> None:
    Learner().hand_in(course.submitted, "ada")
    Learner().answer("ulp", "").hand_in(course.submitted, "bob")
    course.run("nbgrader", "generate_assignment", ASSIGNMENT, "--force")
    course.run("nbgrader", "autograde", ASSIGNMENT, "--student", "ada")
    first = graded_at(course)
    results = course.grade("--record")
    second = graded_at(course)
    assert first == {"ada": second["ada"]}
    assert {name: each["score"] for name, each in results.items()} == {"ada": 26.0, "bob": 23.0}
    course.run("nbgrader", "autograde", ASSIGNMENT)
    course.grade("--record")
    assert graded_at(course) == second
    shutil.rmtree(course.submitted / "bob")
    Learner().hand_in(course.submitted, "bob")
    stored = course.root / "autograded" / "ada" / ASSIGNMENT / NAME
    stored.write_text("{ damaged")
    results = course.grade("--record")
    assert (results["ada"]["score"], results["bob"]["score"]) == (26.0, 26.0)
    assert nbformat.read(stored, as_version=4).cells


def test_one_exercise_is_graded_again_and_the_rest_stays(course: Course) -> None:
    from nbgrader.api import Gradebook

    Learner().hand_in(course.submitted, "ada")
    wrong = "def stable_softmax(x, dim=-1):\n    e = x.exp()\n    return e / e.sum(dim, True)"
    Learner().answer("ulp", "").answer("stable_softmax", wrong).hand_in(course.submitted, "bob")
    course.grade("--record")
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as book:
        for student, exercise in (("ada", "ulp"), ("bob", "round_to")):
            grade = book.find_grade(f"check_{exercise}", Path(NAME).stem, ASSIGNMENT, student)
            grade.auto_score = 0.5
            if student == "bob":
                grade.manual_score = 1.5
        book.db.commit()
    results = course.grade("--record", "--again", "ulp")
    assert course.told == "ulp: ada 0.5 → 3.\n"
    assert results["ada"]["exercises"]["ulp"] == 3.0
    assert results["bob"]["exercises"]["round_to"] == 1.5
    assert results["bob"]["exercises"]["decode_bits"] == 4.0
    for told in (results["bob"], course.grade("--record", "--force", "--again", "ulp")["bob"]):
        assert told["exercises"] == course.marks()["bob"]
        assert told["score"] == sum(course.marks()["bob"].values())
        assert told["reason"].endswith("Marks given by hand count: round_to 1.5 (grading gives 3).")
        assert "round_to: " not in told["reason"]
    assert course.told == "ulp: no mark changed.\n", "also where the whole work was graded"
    assert course.marks() == {name: each["exercises"] for name, each in results.items()}
    assert "has an exercise 'ulpp' to grade again" in course.run(
        "lmcourse", "grade", "submitted", "--record", "--again", "ulpp", rc=2
    )
    course.run("nbgrader", "generate_feedback", ASSIGNMENT, "--student", "bob")
    page = (course.root / "feedback" / "bob" / ASSIGNMENT / NAME).with_suffix(".html").read_text()
    assert "large logits (0 of 2)" in page, "the page shows the hidden cases"
    assert "stable_softmax(torch.tensor(" in page
    graded = nbformat.read(course.root / "autograded" / "bob" / ASSIGNMENT / NAME, as_version=4)
    assert all(cell.get("outputs") != [] for cell in graded.cells if cell["id"].startswith("check_"))


def test_grading_without_record_changes_no_file(course: Course) -> None:
    Learner().hand_in(course.submitted, "ada")
    before = {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()}
    assert course.grade()["ada"]["score"] == 26.0
    assert {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()} == before


def test_gradebook_that_cannot_be_opened_is_reported_in_one_line(course: Course) -> None:
    Learner().hand_in(course.submitted, "ada")
    (course.root / "gradebook.db").write_text("no database")
    said = course.run("lmcourse", "grade", "submitted", "--record", rc=2)
    assert "The gradebook cannot be opened" in said
    assert "Traceback" not in said
