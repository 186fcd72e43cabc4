"""Grade all attacks and three honest learners in one batch into a gradebook."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from lmcourse.report import CHECK_PREFIX
from tests.grading.attacks.attack import Attack
from tests.grading.attacks.school import ASSIGNMENT, LEFT, SECRET, School
from tests.grading.learners import REPOSITORY

# Time limits. A dozen attackers use all their time, mostly asleep, so three are examined at once on two cores.
LIMITS = ["--cell-seconds=6", "--total-seconds=45", "--workers=3"]
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphaned processes become our children


@dataclass
class Batch:
    """The state after grading."""

    school: School
    results: dict[str, dict[str, Any]]  # from `lmcourse grade --json`, by student
    marks: dict[str, dict[str, float | None]]  # in the gradebook, by student and exercise
    touched: set[str]  # changed files that grading must not change
    left: set[str]  # processes that are still running


def graded(root: Path, attacks: Sequence[Attack], shown: Sequence[str] = (), seconds: float = 2400) -> Batch:
    """Grade all submissions in an empty folder `root`; make feedback, which is slow, for the students in `shown`."""
    school = School(root.resolve())
    school.listen()
    school.plant()
    shutil.copy(REPOSITORY / "nbgrader_config.py", school.course)
    for attack in attacks:
        school.hand_in(attack)
    for path in LEFT:
        path.unlink(missing_ok=True)
    before = school.digests()
    command = [sys.executable, "-m", "lmcourse", "grade", "submitted", "--record", "--json", *LIMITS, "--report=report"]
    theirs = {"HOME": str(school.root / "home"), "GRADER_SECRET": f"{SECRET} of the environment"}
    theirs |= {"PYTHONPATH": str(REPOSITORY)}
    with guardian() as left:
        ran = subprocess.run(
            command,
            cwd=school.course,
            env=os.environ | theirs,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-2000:] + "\n".join(re.findall(r".*The grader failed.*", ran.stdout))
    after = school.digests()
    touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    results = {each["student"]: each for each in json.loads(ran.stdout)}
    feedback(school, shown)
    return Batch(school, results, marks(school), touched, left)


def autograded(school: School, students: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return the marks that plain `nbgrader autograde` gives these students."""
    limits = ["--ExamineNotebook.cell_seconds=4", "--ExamineNotebook.total_seconds=20"]
    for student in students:
        subprocess.run(
            [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT, f"--student={student}", "--force", *limits],
            cwd=school.course,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            timeout=900,
            check=True,
        )
    found = marks(school)
    return {student: found[student] for student in students}


@contextmanager
def guardian() -> Iterator[set[str]]:
    """Collect, at the end of the `with` block, the processes that were left behind in it."""
    left: set[str] = set()
    before = children()
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield left
    finally:
        left |= survivors(before)
        prctl(SUBREAPER, 0, 0, 0, 0)


def survivors(before: set[str], seconds: float = 5.0) -> set[str]:
    """Return new child processes that do not end."""
    deadline = monotonic() + seconds
    while (left := children() - before) and monotonic() < deadline:
        for child in left:
            os.waitpid(int(child), os.WNOHANG)  # an ended process counts as a child until its status is read
        sleep(0.05)
    return left


def children() -> set[str]:
    """Return the process ids of this process's children."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


def feedback(school: School, shown: Sequence[str]) -> None:
    """Make the feedback pages for these students."""
    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory

    from lmcourse.grading.gradebook import nbgrader_configuration

    config = nbgrader_configuration(school.course)
    for student in shown:
        course = CourseDirectory(config=config)
        course.assignment_id, course.student_id = ASSIGNMENT, student
        GenerateFeedback(coursedir=course, config=config).start()


def marks(school: School) -> dict[str, dict[str, float | None]]:
    """Return the marks in the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{school.course}/gradebook.db") as book:
        return {
            submission.student.id: {
                grade.name.removeprefix(CHECK_PREFIX): None if grade.auto_score is None else float(grade.score)
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in book.assignment_submissions(ASSIGNMENT)
        }
