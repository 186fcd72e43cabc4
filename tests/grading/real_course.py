"""A course folder with one real notebook, in which a class hands in and `lmcourse grade` is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.course import Chapter, find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.report import CHECK_PREFIX
from tests.grading.tiny_course import REPOSITORY

CHAPTER = find_chapter("01-floating-point")
"""The notebook that is quickest to examine."""

COMMAND = [sys.executable, "-m", "lmcourse", "grade"]


class RealCourse:
    """The folder of a course."""

    def __init__(self, root: Path, chapter: Chapter = CHAPTER) -> None:
        self.root, self.chapter = root, chapter
        shutil.copy(REPOSITORY / "nbgrader_config.py", root)
        for name in ("solutions", "notebooks"):
            shutil.copytree(REPOSITORY / name / chapter.id, root / name / chapter.id)
        self.name = f"{chapter.topic}.ipynb"
        self.points = {exercise.name: float(exercise.points) for exercise in exercises_of(chapter)}

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return os.environ | {"PYTHONPATH": path, "COLUMNS": "80"}

    def solved(self) -> NotebookNode:
        return nbformat.read(self.root / "solutions" / self.chapter.id / self.name, as_version=4)

    def released(self) -> NotebookNode:
        return nbformat.read(self.root / "notebooks" / self.chapter.id / self.name, as_version=4)

    def partly(self, *names: str) -> NotebookNode:
        """The student's copy with these exercises solved."""
        right = {cell["id"]: cell.source for cell in self.solved().cells}
        notebook = self.released()
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") in names:
                cell.source = right[cell["id"]]
        return notebook

    def submit(self, student: str, notebook: NotebookNode) -> Path:
        path = self.root / "submitted" / student / self.chapter.id / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def graded(self, student: str) -> Path:
        return self.root / "autograded" / student / self.chapter.id / self.name

    def start(self, *flags: str, **environment: str) -> subprocess.Popen[str]:
        """`lmcourse grade submitted --record --json`, started."""
        command = [*COMMAND, "submitted", "--record", "--json", *flags]
        outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = self.environment | environment
        return subprocess.Popen(command, cwd=self.root, env=env, text=True, start_new_session=True, **outputs)

    def grade(self, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The same, waited for."""
        with self.start(*flags, **environment) as process:
            out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def nbgrader(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nbgrader", *words]
        return subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=240, check=True
        )

    def marks(self, url: str | None = None) -> dict[str, dict[str, float]]:
        """What a gradebook holds: points by student and exercise."""
        from nbgrader.api import Gradebook

        with Gradebook(url or f"sqlite:///{self.root}/gradebook.db") as book:
            return {
                submission.student.id: {
                    grade.name.removeprefix(CHECK_PREFIX): grade.score
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                }
                for submission in book.assignment_submissions(self.chapter.id)
            }

    def expected(self, solved: Sequence[str]) -> dict[str, float]:
        """The marks of whoever solved these exercises."""
        return {name: points if name in solved else 0.0 for name, points in self.points.items()}
