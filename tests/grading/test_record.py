"""`lmcourse grade --record` on a real notebook: what it writes, when it is killed, and when it runs again."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from lmcourse.errors import CourseError
from lmcourse.grading.batch import Pool
from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.grader import GradingOptions
from lmcourse.grading.record import record
from lmcourse.grading.result import SubmissionResult
from tests.grading.real_course import RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SOME = ("decimal_error", "max_finite")


class GradedOnce(RealCourse):
    """A course, what the first run said, and the worker of those that follow."""

    first: dict[str, dict[str, Any]]
    pool: Pool


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> GradedOnce:
    """A class, graded once."""
    course = GradedOnce(tmp_path_factory.mktemp("course").resolve())
    course.pool = pool
    course.submit("ada", course.solved())
    course.submit("bob 2", course.partly(*SOME))
    course.submit("cyd", course.released()).write_text("{ not json")
    (course.root / "submitted" / "dan" / course.chapter.id).mkdir(parents=True)
    for name in ("fay [2]", "me", course.chapter.id):
        course.submit(name, course.solved())
    (course.submit("eve", course.partly(SOME[0])).parent / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    course.first = {one.student: one.to_json() for one in again(course)}
    return course


def files(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_marks_are_in_the_gradebook(course: GradedOnce) -> None:
    nobody = course.expected(())
    assert course.marks() == {
        "ada": course.points,
        "bob 2": course.expected(SOME),
        "cyd": nobody,
        "dan": nobody,
        "eve": course.expected(SOME[:1]),
    }
    assert {name: one["exercises"] for name, one in course.first.items() if one["assignment"]} == course.marks()


def test_every_zero_has_its_reason(course: GradedOnce) -> None:
    assert "cannot be read as a notebook" in course.first["cyd"]["reason"]
    assert "The name of the folder fay [2] is no plain name" in course.first["fay [2]"]["reason"]
    assert "No notebook was handed in" in course.first["dan"]["reason"]
    assert course.first["ada"]["reason"] == "Every check passed."


def test_autograded_is_what_nbgrader_works_with(course: GradedOnce) -> None:
    course.nbgrader("generate_feedback", course.chapter.id)
    course.nbgrader("export", "--to", "grades.csv")
    page = (course.root / "feedback" / "ada" / course.chapter.id / course.name).with_suffix(".html").read_text()
    assert "decimal_error" in page
    rows = [line.split(",") for line in (course.root / "grades.csv").read_text().splitlines()]
    assert {row[3]: float(row[9]) for row in rows[1:]} == {
        s: sum(marks.values()) for s, marks in course.marks().items()
    }
    assert (course.graded("eve").parent / "timestamp.txt").is_file()
    assert [row[2] for row in rows if row[3] == "eve"] == ["2026-03-01 12:00:00"]


def test_a_second_run_grades_nothing_and_says_the_same(course: GradedOnce) -> None:
    before = files(course.root / "autograded")
    assert {one.student: one.to_json() for one in again(course)} == course.first
    after = files(course.root / "autograded")
    recorded = {name for name in before if name.startswith(("ada/", "bob 2/", "eve/"))}
    assert len(recorded) == 4
    assert {name: after[name] for name in recorded} == {name: before[name] for name in recorded}


def test_what_was_handed_in_anew_is_graded_anew_and_nothing_else(course: GradedOnce) -> None:
    before = files(course.root / "autograded")
    course.submit("bob 2", course.partly(*SOME, "ulp"))
    course.submit("late", course.released())
    course.graded("eve").unlink()  # as if a run had been killed between her marks and her notebook
    again(course)
    marks = course.marks()
    assert marks["bob 2"] == course.expected((*SOME, "ulp"))
    assert marks["eve"] == course.expected(SOME[:1])
    after = files(course.root / "autograded")
    changed = {name.split("/")[0] for name in after if before.get(name) != after[name]}
    assert changed == {"bob 2", "late", "eve", "dan"}  # of dan there is no notebook that could be the same
    ada, bob, late = (seed_of(course, one) for one in ("ada", "bob 2", "late"))
    assert ada == late
    assert bob != ada  # who hands in again may know the hidden cases of the first time
    again(course, force=True)
    assert seed_of(course, "bob 2") == seed_of(course, "ada") != ada


def seed_of(course: RealCourse, student: str) -> int:
    seed: int = nbformat.read(course.graded(student), 4).metadata[METADATA_KEY]["seed"]
    return seed


def again(course: GradedOnce, **how: Any) -> list[SubmissionResult]:
    """Grade in this process and with the worker that is there, which is quicker for a few."""
    return record([course.root / "submitted"], course=course.root, pool=course.pool, **how)


def slow(course: RealCourse, seconds: float) -> NotebookNode:
    notebook = course.partly(*SOME)
    notebook.cells.insert(0, new_code_cell(f"import time; time.sleep({seconds})"))
    return notebook


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_a_run_that_is_killed_is_finished_by_the_next_one(tmp_path: Path, pool: Pool) -> None:
    course = RealCourse(tmp_path)
    for number, seconds in enumerate((0, 0, 1, 3)):
        course.submit(f"student{number}", slow(course, seconds))
    with course.start("--workers", "1") as process:
        wait_for(course.graded("student0"))
        os.kill(process.pid, signal.SIGKILL)
    done = [f"student{number}" for number in range(4) if course.graded(f"student{number}").exists()]
    assert 1 <= len(done) < 4
    before = {name: files(course.graded(name).parent) for name in done}
    deadline = time.monotonic() + 60
    while processes_in(tmp_path):  # the workers notice, and end with what they were at
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not any(one.failed for one in record([tmp_path / "submitted"], course=tmp_path, pool=pool))
    assert course.marks() == {f"student{number}": course.expected(SOME) for number in range(4)}
    assert {name: files(course.graded(name).parent) for name in done} == before
    assert not list((tmp_path / ".grading").glob("work"))


def test_a_forced_run_that_is_stopped_leaves_no_second_seed(course: GradedOnce) -> None:
    """The next run, forced or not, finishes it."""
    done: list[int] = []

    def stop(number: int, of: int) -> None:
        done.append(number)
        if number == 2:
            raise KeyboardInterrupt

    before = {student: seed_of(course, student) for student in ("ada", "bob 2", "eve")}
    with pytest.raises(KeyboardInterrupt):
        again(course, force=True, options=GradingOptions(on_progress=stop))
    assert len({seed_of(course, student) for student in before}) == 2
    again(course)
    after = {seed_of(course, student) for student in before}
    assert len(after) == 1
    assert after.isdisjoint(before.values())
    again(course)
    assert {seed_of(course, student) for student in before} == after


def test_two_runs_do_not_write_at_once(course: GradedOnce) -> None:
    with FileLock(course.root / ".grading" / "lock"), pytest.raises(CourseError, match="Somebody is grading into"):
        again(course)


def test_marks_by_hand_stay(course: GradedOnce) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as book:
        grade = book.find_grade("check_ulp", course.chapter.topic, course.chapter.id, "eve")
        grade.manual_score = 0.5
        book.db.commit()
    again(course, force=True)
    assert course.marks()["eve"]["ulp"] == 0.5


def test_what_cannot_be_recorded_is_said(course: GradedOnce) -> None:
    notebook = course.root / "submitted" / "ada" / course.chapter.id / course.name
    with pytest.raises(CourseError, match="--record takes folders"):
        record([notebook], course=course.root)
    with pytest.raises(CourseError, match="The gradebook cannot be opened"):
        record([course.root / "submitted"], course=course.root, db="sqlite:////no/such/folder/gradebook.db")
