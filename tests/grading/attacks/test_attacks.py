"""Grade all attackers and three honest learners in one batch: check the results and the grader's secrets.

The attacks use a real notebook of the course and are graded like a class, into a gradebook.
"""

from __future__ import annotations

import csv
import json
import re
import time

import pytest

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.files import MAX_FILE_BYTES
from lmcourse.grading.sandbox import isolation_problem
from lmcourse.grading.wire import MAX_BYTES, ProtocolError, decode
from tests.grading.attacks import ATTACKS, PAGES, Attack
from tests.grading.attacks.attack import PLAIN
from tests.grading.attacks.connection import MESSAGES
from tests.grading.attacks.our_grader import Batch, autograded, graded
from tests.grading.attacks.school import ASSIGNMENT, HEARD, HONEST, LEFT, NAME, OPEN, SECRET, scripts_in

NEEDS_BUBBLEWRAP = pytest.mark.skipif(bool(isolation_problem()), reason=isolation_problem())
# the first test waits for the whole batch
pytestmark = [pytest.mark.prove, NEEDS_BUBBLEWRAP, pytest.mark.timeout(2700)]

POINTS = {exercise.name: float(exercise.points) for exercise in exercises_of(find_chapter(ASSIGNMENT))}
# Students for whom feedback is made, which is slow in nbgrader
SHOWN = [*(attack.name for attack in PAGES), "plain_test", "report_forged"]
# Attacks that are also graded by `nbgrader autograde`
PLAIN_NBGRADER = ("plain_test", "links_beside", "answers_for_later")


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return graded(tmp_path_factory.mktemp("school"), ATTACKS, SHOWN)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack_earns_nothing_and_has_a_reason(batch: Batch, attack: Attack) -> None:
    result = batch.results[attack.name]
    points = {name: earned for name, earned in result["exercises"].items() if name != PLAIN}
    assert sum(points.values()) == 0, result
    assert "The grader failed" not in result["reason"]
    assert re.search(attack.reason, result["reason"])
    assert result["reason"].isprintable()
    assert len(result["reason"]) < 2000


def test_honest_submissions_keep_their_exact_marks(batch: Batch) -> None:
    nothing = dict.fromkeys(POINTS, 0.0)
    whole = POINTS | dict.fromkeys(OPEN, 0.0)
    half = nothing | dict([*whole.items()][: len(POINTS) // 2])
    for student, points, plain in zip(HONEST, (whole, half, nothing), (1.0, 1.0, 0.0), strict=True):
        assert batch.results[student]["exercises"] == points | {PLAIN: plain}
        assert batch.marks[student] == points | {PLAIN: plain}


def test_gradebook_has_the_printed_marks(batch: Batch) -> None:
    assert set(batch.results) == {*HONEST, *(attack.name for attack in ATTACKS)}
    printed = {student: told["exercises"] for student, told in batch.results.items() if told["assignment"]}
    assert printed == batch.marks


def test_no_secret_is_in_the_files_of_grading(batch: Batch) -> None:
    for folder in ("autograded", "feedback", "report"):
        for path in (batch.school.course / folder).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert not path.is_symlink(), path
                assert SECRET.encode() not in content, path
                assert not content.startswith(b"SQLite"), path
    assert SECRET not in json.dumps(batch.results)


def test_no_attack_received_data(batch: Batch) -> None:
    heard = [student for student in batch.results if HEARD in batch.school.printed(student)]
    assert heard == []
    assert HEARD not in json.dumps(batch.results)


def test_nothing_was_written_elsewhere(batch: Batch) -> None:
    assert batch.touched == set()
    assert [path for path in LEFT if path.exists()] == []
    assert {path.name for path in (batch.school.course / "submitted").iterdir()} == set(batch.results)


def test_no_attack_reached_the_server(batch: Batch) -> None:
    assert batch.school.visits == []


def test_no_process_is_left(batch: Batch) -> None:
    assert batch.left == set()


@pytest.mark.parametrize("student", SHOWN)
def test_feedback_page_runs_no_script(batch: Batch, student: str) -> None:
    [page] = batch.school.pages(student)
    assert scripts_in(page.read_text()) == []
    assert HEARD not in page.read_text()


def test_class_report_runs_no_script(batch: Batch) -> None:
    folder = batch.school.course / "report"
    assert scripts_in((folder / "report.html").read_text()) == []
    for table in sorted(folder.glob("*.csv")):
        with table.open(newline="") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        assert [cell for cell in cells if re.match(r"\s*[=+@-](?![\d.])", cell)] == []


def test_stored_submissions_are_small(batch: Batch) -> None:
    sizes = {path: path.stat().st_size for path in (batch.school.course / "autograded").rglob(NAME)}
    assert {path: size for path, size in sizes.items() if size > 2**20} == {}
    files = [path for path in (batch.school.course / "autograded").rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < MAX_FILE_BYTES


def test_plain_nbgrader_gives_the_same_marks(batch: Batch) -> None:
    """This test must run last, because it overwrites the recorded marks of the batch."""
    marks = autograded(batch.school, PLAIN_NBGRADER)
    assert marks == {student: batch.marks[student] for student in PLAIN_NBGRADER}
    assert batch.school.visits == []


@pytest.mark.parametrize("name", MESSAGES)
def test_hostile_message_is_rejected_at_once(name: str) -> None:
    begin = time.process_time()
    with pytest.raises(ProtocolError):
        decode(MESSAGES[name][:MAX_BYTES])
    assert time.process_time() - begin < 2
