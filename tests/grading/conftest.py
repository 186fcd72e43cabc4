"""What the tests of grading share: a course folder with notebook 01, and the commands that grade a class."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmcourse.grading.sandbox import isolation_problem
from tests.grading.learners import ASSIGNMENT, REPOSITORY

needs_bubblewrap = pytest.mark.skipif(bool(isolation_problem()), reason=isolation_problem())


@dataclass
class Course:
    """A course folder of its own."""

    root: Path

    @property
    def submitted(self) -> Path:
        """Where learners hand in."""
        return self.root / "submitted"

    def run(self, *words: str, rc: int = 0) -> str:
        """Run a command of Python's in the course's folder; what it printed."""
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
        command = [sys.executable, "-m", *words]
        ran = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        assert ran.returncode == rc, (ran.returncode, ran.stdout[-2000:], ran.stderr[-4000:])
        return ran.stdout if rc == 0 else ran.stdout + ran.stderr

    def grade(self, *flags: str) -> dict[str, dict[str, Any]]:
        """`lmcourse grade submitted --json`; the results by student."""
        return {
            each["student"]: each for each in json.loads(self.run("lmcourse", "grade", "submitted", "--json", *flags))
        }

    def marks(self, assignment: str = ASSIGNMENT) -> dict[str, dict[str, float]]:
        """The points in the gradebook, by student and exercise."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.root}/gradebook.db") as book:
            return {
                one.student.id: {
                    grade.name.removeprefix("check_"): float(grade.score)
                    for notebook in one.notebooks
                    for grade in notebook.grades
                }
                for one in book.assignment_submissions(assignment)
            }


def make_course(root: Path) -> Course:
    """A course folder with notebook 01, in a folder that is not there yet."""
    for folder in ("solutions", "notebooks"):
        shutil.copytree(REPOSITORY / folder / ASSIGNMENT, root / folder / ASSIGNMENT)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    return Course(root)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course folder with notebook 01."""
    return make_course(tmp_path / "course")
