"""What goes wrong around a class that is recorded: its gradebook, its graded notebooks, its disk. Nothing is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.batch import Pool
from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.grader import GradingOptions
from lmcourse.grading.record import record
from lmcourse.grading.result import SubmissionResult
from tests.course.chapters import ROOT
from tests.grading.real_course import COMMAND, RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

CLASS = {"ada": ("decimal_error", "max_finite"), "bob": ("decimal_error",), "cyd": ()}


class StopError(Exception):
    """Somebody ends a run."""


class Recorded(RealCourse):
    """A course, and the worker of its runs in this process."""

    pool: Pool


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> Recorded:
    """A class, graded once."""
    course = Recorded(tmp_path_factory.mktemp("course").resolve())
    course.pool = pool
    for student, names in CLASS.items():
        course.submit(student, course.partly(*names))
    grade(course)
    return course


@pytest.fixture
def course(recorded: Recorded, tmp_path: Path) -> Iterator[Recorded]:
    """The same, for whatever a test does to it, and as it was afterwards."""
    kept = tmp_path / "kept"
    shutil.copytree(recorded.root, kept)
    yield recorded
    for path in (*recorded.root.iterdir(),):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(kept, recorded.root, dirs_exist_ok=True)


def grade(course: Recorded, *students: str, stop_after: int = 99, force: bool = False) -> list[SubmissionResult]:
    """Grade in this process, all or some."""

    def count(number: int, of: int) -> None:
        if number == stop_after:
            raise StopError

    paths = [course.root / "submitted" / student for student in students] or [course.root / "submitted"]
    options = GradingOptions(on_progress=count)
    return record(paths, course=course.root, options=options, force=force, pool=course.pool)


def seeds(course: RealCourse) -> dict[str, int]:
    return {name: nbformat.read(course.graded(name), 4).metadata[METADATA_KEY]["seed"] for name in CLASS}


def expected(course: RealCourse) -> dict[str, dict[str, float]]:
    return {student: course.expected(names) for student, names in CLASS.items()}


def contents(course: RealCourse) -> dict[str, bytes]:
    places = [course.root / "gradebook.db", *(course.root / "autograded").rglob("*.ipynb")]
    return {str(path): path.read_bytes() for path in places}


def test_part_of_a_class_does_not_end_a_forced_run_that_was_stopped(course: Recorded) -> None:
    before = seeds(course)
    with pytest.raises(StopError):
        grade(course, stop_after=1, force=True)
    [new] = {*seeds(course).values()} - {*before.values()}
    [first] = [name for name, seed in seeds(course).items() if seed == new]
    second, third = sorted({*CLASS} - {first})
    grade(course, second)
    assert {name for name, seed in seeds(course).items() if seed == new} == {first, second}
    grade(course)
    assert seeds(course) == dict.fromkeys(CLASS, new)
    assert not list((course.root / ".grading").glob("*.seed"))
    grade(course, third, force=True)  # one of a class is asked again what the others were asked
    assert seeds(course) == dict.fromkeys(CLASS, new)


def test_a_damaged_graded_notebook_is_made_again_and_no_other_one(course: Recorded) -> None:
    before, seed = contents(course), seeds(course)
    course.graded("ada").chmod(0o644)
    course.graded("ada").write_bytes(b'{"cells": [' + b"\0" * 100)
    assert {one.student: one.failed for one in grade(course)} == dict.fromkeys(CLASS, False)
    assert (course.marks(), seeds(course)) == (expected(course), seed)
    after = contents(course)
    assert [before[path] == after[path] for path in before if "bob" in path or "cyd" in path] == [True, True]


def test_a_gradebook_that_lost_its_marks_is_filled_again(course: Recorded) -> None:
    seed = seeds(course)
    (course.root / "gradebook.db").write_bytes(b"")
    grade(course)
    assert (course.marks(), seeds(course)) == (expected(course), seed)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("ffffffffffff", "newer nbgrader .* install that one"),
        ("724cde206c17", "older nbgrader: run `nbgrader"),
    ],
    ids=["newer", "older"],
)
def test_a_gradebook_of_another_nbgrader_is_left_alone(course: Recorded, version: str, message: str) -> None:
    with sqlite3.connect(course.root / "gradebook.db") as book:
        book.execute("UPDATE alembic_version SET version_num = ?", [version])
    before = contents(course)
    course.submit("ada", course.partly())
    with pytest.raises(CourseError, match=f"^The gradebook is of an? {message}.*$"):
        grade(course)
    assert contents(course) == before


def test_a_file_that_is_no_gradebook_is_left_alone(course: Recorded) -> None:
    (course.root / "gradebook.db").write_bytes(b"no database" * 1000)
    before = contents(course)
    with pytest.raises(CourseError, match=r"^The gradebook cannot be opened .*: put a good copy in its place"):
        grade(course)
    assert contents(course) == before


def test_a_course_that_cannot_be_written_to_is_said_in_a_line(course: Recorded) -> None:
    course.submit("ada", course.partly("ulp"))
    locked = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(course.root), str(course.root)]
    command = [*locked, "--chdir", str(course.root), *COMMAND, "submitted", "--record"]
    ran = subprocess.run(command, env=course.environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    [line] = ran.stderr.splitlines()
    assert line.startswith("lmcourse: Nothing more can be written to ")
    assert "(Read-only file system): make room or allow it" in line


FULL_DISK = """
cp -r {course}/. /tmp/disk && cd /tmp/disk && rm -rf autograded gradebook.db
fallocate -l 100G filler 2>/dev/null || head -c 100G /dev/zero > filler 2>/dev/null
truncate -s -{room} filler
{command} >first.out 2>/dev/shm/first.err; echo $? >/dev/shm/first.rc
rm filler
cat /dev/shm/first.rc /dev/shm/first.err; echo ---
{command} --json
"""


def test_a_disk_that_is_full_is_said_in_a_line_and_everybody_is_graded_later(course: Recorded) -> None:
    command = " ".join([*COMMAND, "submitted", "--record", "--workers", "1"])
    script = FULL_DISK.format(course=course.root, command=command, room=600_000)
    disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(2**25), "--tmpfs", "/tmp", "--dir", "/tmp/disk"]
    for folder in (sys.prefix, str(ROOT), str(course.root)):  # whichever of them lies in /tmp
        disk += ["--bind", folder, folder]
    disk += ["--tmpfs", "/dev/shm"]
    ran = subprocess.run(
        [*disk, "sh", "-c", script], env=course.environment, capture_output=True, text=True, timeout=240, check=False
    )
    first, _, second = ran.stdout.partition("---\n")
    status, *lines = first.splitlines()
    assert (status, len(lines)) == ("2", 1), (first, ran.stderr)
    assert lines[0].startswith("lmcourse: Nothing more can be written to ")
    assert "make room or allow it, and run the same again. What is recorded stays." in lines[0]
    assert ran.returncode == 0, ran.stderr
    assert {one["student"]: one["exercises"] for one in json.loads(second)} == expected(course)
