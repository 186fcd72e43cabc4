"""All attackers, three honest learners, one batch: what everybody got, and what became of the grader's secrets.

The attacks are made for a real notebook of the course and graded as a class is, into a gradebook.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.jail import Limits
from tests.grading.attacks import ATTACKS, PAGES, Attack
from tests.grading.attacks.school import ASSIGNMENT, HEARD, HONEST, LEFT, NAME, SECRET, School, scripts_in
from tests.grading.jailed import needs_bubblewrap
from tests.grading.tiny_course import REPOSITORY

pytestmark = needs_bubblewrap

POINTS = {exercise.name: float(exercise.points) for exercise in exercises_of(find_chapter(ASSIGNMENT))}
SEED = "20261121"
LIMITS = ["--cell-seconds=4", "--total-seconds=8"]
"""A notebook of an honest learner takes half a second."""

SHOWN = [*(attack.name for attack in PAGES), "tells_what_it_was_asked", "reads_hidden_tests", "score_nan"]
"""Whose feedback is made: nbgrader takes its time for a page."""

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: whoever loses their parent becomes our child


@dataclass
class Batch:
    """What is left after grading.

    Attributes:
        school: the folder.
        results: by student, as `lmcourse grade --json` printed them.
        marks: by student and exercise, as the gradebook has them.
        touched: files that are no longer what they were, though grading has no business with them.
        left: processes that are still there.
    """

    school: School
    results: dict[str, dict[str, Any]]
    marks: dict[str, dict[str, float | None]]
    touched: set[str]
    left: set[str]


@contextmanager
def guardian() -> Iterator[set[str]]:
    """Collects, at its end, the processes that were left behind inside of the block."""
    left: set[str] = set()
    before = children()
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield left
    finally:
        left |= children() - before
        prctl(SUBREAPER, 0, 0, 0, 0)


def children() -> set[str]:
    """The numbers of this process's children."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    school = School(tmp_path_factory.mktemp("school").resolve())
    school.listen()
    school.plant()
    shutil.copy(REPOSITORY / "nbgrader_config.py", school.course)
    for attack in ATTACKS:
        school.hand_in(attack)
    for path in LEFT:
        path.unlink(missing_ok=True)
    before = school.digests()
    command = [sys.executable, "-m", "lmcourse", "grade", "submitted", "--record", "--json", *LIMITS]
    theirs = {"HOME": str(school.root / "home"), "GRADER_SECRET": f"{SECRET} of the environment"}
    theirs |= {"PYTHONPATH": str(REPOSITORY), "LMCOURSE_SEED": SEED}
    with guardian() as left:
        ran = subprocess.run(
            command, cwd=school.course, env=os.environ | theirs, capture_output=True, text=True, timeout=280, check=False
        )
    assert ran.returncode == 0, ran.stderr[-2000:]
    after = school.digests()
    touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    results = {each["student"]: each for each in json.loads(ran.stdout)}
    feedback(school)
    return Batch(school, results, marks(school), touched, left)


def feedback(school: School) -> None:
    """Make the pages of those who attack pages."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    from lmcourse.grading.record import nbgrader_configuration

    config = nbgrader_configuration(school.course)
    for student in SHOWN:
        course = CourseDirectory(config=config)
        course.assignment_id, course.student_id = ASSIGNMENT, student
        GenerateFeedback(coursedir=course, config=config).start()


def marks(school: School) -> dict[str, dict[str, float | None]]:
    """What the gradebook holds."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{school.course}/gradebook.db") as book:
        return {
            submission.student.id: {
                grade.name.removeprefix("check_"): None if grade.auto_score is None else float(grade.score)
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in book.assignment_submissions(ASSIGNMENT)
        }


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_gains_nothing_and_is_told_why(batch: Batch, attack: Attack) -> None:
    result = batch.results[attack.name]
    assert result["score"] <= attack.may_earn, result
    assert sum(result["exercises"].values()) == result["score"]
    assert re.search(attack.reason, result["reason"])
    assert result["reason"].isprintable()
    assert len(result["reason"]) < 2000
    kinds = {one["kind"] for one in result["evidence"]}
    assert not attack.kinds or kinds & set(attack.kinds), (attack.kinds, result["evidence"])


def test_honest_neighbours_have_exactly_their_marks_and_no_evidence(batch: Batch) -> None:
    half = dict.fromkeys(POINTS, 0.0) | dict([*POINTS.items()][: len(POINTS) // 2])
    expected = dict(zip(HONEST, (POINTS, half, dict.fromkeys(POINTS, 0.0)), strict=True))
    for student, points in expected.items():
        assert batch.results[student]["exercises"] == points
        assert batch.results[student]["evidence"] == []
        assert batch.marks[student] == points


def test_the_gradebook_has_what_was_told_of_everybody(batch: Batch) -> None:
    assert set(batch.results) == {*HONEST, *(attack.name for attack in ATTACKS)}
    unusable = {"every*"}
    assert {student: result["exercises"] for student, result in batch.results.items() if student not in unusable} == (
        batch.marks
    )


def test_no_secret_got_anywhere(batch: Batch) -> None:
    for folder in ("autograded", "feedback"):
        for path in (batch.school.course / folder).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert not path.is_symlink(), path
                assert SECRET.encode() not in content, path
                assert not content.startswith(b"SQLite"), path
    assert SECRET not in json.dumps(batch.results)


def test_nobody_heard_anything(batch: Batch) -> None:
    heard = [student for student in batch.results if HEARD in batch.school.printed(student)]
    assert heard == []
    assert HEARD not in json.dumps(batch.results)
    assert not any(HEARD in path.read_text() for student in SHOWN for path in batch.school.pages(student))


def test_nothing_was_written_elsewhere(batch: Batch) -> None:
    assert {path for path in batch.touched if "/.grading/" not in path} == set()
    assert [path for path in LEFT if path.exists()] == []
    assert not any((batch.school.course / "submitted" / name).exists() for name in ("zz-new-student", "left-behind.txt"))


def test_nobody_reached_the_server(batch: Batch) -> None:
    assert batch.school.visits == []


def test_no_process_is_left(batch: Batch) -> None:
    assert batch.left == set()


@pytest.mark.parametrize("student", SHOWN)
def test_nothing_on_a_page_runs(batch: Batch, student: str) -> None:
    [page] = batch.school.pages(student)
    assert scripts_in(page.read_text()) == []


def test_what_is_kept_of_a_submission_is_small(batch: Batch) -> None:
    large = {
        path.parent.parent.name: size
        for path in (batch.school.course / "autograded").rglob(NAME)
        if (size := path.stat().st_size) > 2**20
    }
    assert set(large) <= {"huge_notebook"}
    assert max(path.stat().st_size for path in (batch.school.course / "autograded").rglob("*")) < Limits().file_size
