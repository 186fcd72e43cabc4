"""Shared fixtures for grading: a course folder with notebook 01, and the commands that grade a class."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lmcourse.cli import main
from lmcourse.grading.sandbox import isolation_problem
from tests.grading.learners import ASSIGNMENT, NAME, REPOSITORY, notebook_in

needs_bubblewrap = pytest.mark.skipif(bool(isolation_problem()), reason=isolation_problem())


@dataclass
class Course:
    """A separate course folder. `told` has what the last command wrote to stderr."""

    root: Path
    told: str = ""

    @property
    def submitted(self) -> Path:
        """The folder for submissions."""
        return self.root / "submitted"

    def run(self, *words: str, rc: int = 0) -> str:
        """Run a command in the course's folder and return its output. Our own runs in this process, which has already
        imported torch and nbgrader."""
        if words[0] == "lmcourse":
            return self._run_here(words[1:], rc)
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
        command = [sys.executable, "-m", *words]
        ran = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        self.told = ran.stderr
        assert ran.returncode == rc, (ran.returncode, ran.stdout[-2000:], ran.stderr[-4000:])
        return ran.stdout if rc == 0 else ran.stdout + ran.stderr

    def _run_here(self, words: Sequence[str], rc: int) -> str:
        printed, errors = StringIO(), StringIO()
        with chdir(self.root), redirect_stdout(printed), redirect_stderr(errors):
            status = main(words)
        self.told = errors.getvalue()
        assert status == rc, (status, printed.getvalue()[-2000:], errors.getvalue()[-4000:])
        return printed.getvalue() if rc == 0 else printed.getvalue() + errors.getvalue()

    def grade(self, *flags: str) -> dict[str, dict[str, Any]]:
        """Run `lmcourse grade submitted --json` and return the results by student."""
        return {
            each["student"]: each for each in json.loads(self.run("lmcourse", "grade", "submitted", "--json", *flags))
        }

    def hand_in(self, assignment: str, student: str, **answers: str) -> None:
        """Submit the release of a notebook with these answers."""
        (release,) = (self.root / "notebooks" / assignment).glob("*.ipynb")
        notebook = nbformat.read(release, as_version=4)
        for cell in notebook.cells:
            cell.source = answers.get(cell["id"], cell.source)
        place = self.submitted / student / assignment
        place.mkdir(parents=True)
        (place / release.name).write_text(json.dumps(notebook))

    def marks(self, assignment: str = ASSIGNMENT) -> dict[str, dict[str, float]]:
        """Return the points in the gradebook, by student and exercise."""
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


CONFIG = """
from pathlib import Path
from lmcourse.grading.config import configure
configure(get_config(), Path(__file__).parent)
"""


def own_course(root: Path, assignment: str, **sources: str) -> Course:
    """Create a teacher's own course folder with the files `exercises.py` and the source of one notebook."""
    folder = root / "solutions" / assignment
    folder.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    for name, text in sources.items():
        (folder / f"{name}.py").write_text(text)
    return Course(root)


def make_course(root: Path) -> Course:
    """Create a course folder with notebook 01, without its open task, at a path that does not exist yet."""
    for folder in ("solutions", "notebooks"):
        shutil.copytree(REPOSITORY / folder / ASSIGNMENT, root / folder / ASSIGNMENT)
        nbformat.write(notebook_in(folder), root / folder / ASSIGNMENT / NAME)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    return Course(root)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course folder with notebook 01."""
    return make_course(tmp_path / "course")
