"""All attackers, three honest learners, one batch: what everybody got, and what became of the grader's secrets.

The attacks are made for a real notebook of the course and graded as a class is, into a gradebook.
"""

from __future__ import annotations

import csv
import json
import re

import pytest

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.sandbox import ResourceLimits
from tests.grading.attacks import ATTACKS, PAGES, Attack
from tests.grading.attacks.our_grader import Batch, graded
from tests.grading.attacks.school import ASSIGNMENT, HEARD, HONEST, LEFT, NAME, SECRET, scripts_in
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = [needs_bubblewrap, pytest.mark.timeout(900)]  # the first test waits for the whole batch

POINTS = {exercise.name: float(exercise.points) for exercise in exercises_of(find_chapter(ASSIGNMENT))}
SHOWN = [*(attack.name for attack in PAGES), "tells_what_it_was_asked", "reads_hidden_tests", "score_nan"]
"""Whose feedback is made: nbgrader takes its time for a page."""


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return graded(tmp_path_factory.mktemp("school"), ATTACKS, SHOWN)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_gains_nothing_and_is_told_why(batch: Batch, attack: Attack) -> None:
    result = batch.results[attack.name]
    assert result["score"] == sum(result["exercises"].values()) <= attack.gain, result
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
    assert {student: told["exercises"] for student, told in batch.results.items() if told["assignment"]} == batch.marks


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
    assert batch.touched == set()
    assert [path for path in LEFT if path.exists()] == []
    assert {path.name for path in (batch.school.course / "submitted").iterdir()} == set(batch.results)


def test_nobody_reached_the_server(batch: Batch) -> None:
    assert batch.school.visits == []


def test_no_process_is_left(batch: Batch) -> None:
    assert batch.left == set()


@pytest.mark.parametrize("student", SHOWN)
def test_nothing_on_a_page_runs(batch: Batch, student: str) -> None:
    [page] = batch.school.pages(student)
    assert scripts_in(page.read_text()) == []


def test_nothing_in_the_report_on_the_class_runs(batch: Batch) -> None:
    folder = batch.school.course / "report"
    assert scripts_in((folder / "report.html").read_text()) == []
    for table in sorted(folder.glob("*.csv")):
        with table.open(newline="") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        assert SECRET not in str(cells)
        assert [cell for cell in cells if re.match(r"\s*[=+@-](?![\d.])", cell)] == []


def test_what_is_kept_of_a_submission_is_small(batch: Batch) -> None:
    large = {
        path.parent.parent.name: size
        for path in (batch.school.course / "autograded").rglob(NAME)
        if (size := path.stat().st_size) > 2**20
    }
    assert set(large) <= {"huge_notebook"}
    largest = max(path.stat().st_size for path in (batch.school.course / "autograded").rglob("*"))
    assert largest < ResourceLimits().file_size
