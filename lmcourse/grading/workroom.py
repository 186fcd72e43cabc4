"""A temporary nbgrader course, with a gradebook of its own, that takes one submission after the other."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.grading.config import configure
from lmcourse.grading.submissions import Assignment


class Workroom:
    """nbgrader at work in a folder that is thrown away afterwards. Its converters run in this process."""

    def __init__(self, root: Path) -> None:
        from nbgrader.coursedir import CourseDirectory

        self.root = root
        self.config = Config()
        configure(self.config, root, source="source", release="release")
        self.course = CourseDirectory(config=self.config)

    def prepare(self, assignment: Assignment) -> None:
        """Put an assignment into the gradebook.

        Raises:
            NbGraderException: nbgrader cannot work with its source notebook.
        """
        from nbgrader.converters import GenerateAssignment

        folder = self.root / "source" / assignment.id
        shutil.copytree(
            assignment.source.parent,
            folder,
            ignore=shutil.ignore_patterns(*self.course.ignore),
            dirs_exist_ok=True,
        )
        with self._at_work(assignment.id, "."):
            GenerateAssignment(coursedir=self.course, config=self.config, force=True).start()

    def autograde(self, student: str, assignment: Assignment, notebook: Path) -> None:
        """Grade one notebook; the marks go into this room's gradebook.

        Raises:
            Exception: nbgrader failed; a broken submission alone does not make it fail.
        """
        from nbgrader.converters import Autograde

        place = self.root / "submitted" / student / assignment.id / assignment.source.name
        place.parent.mkdir(parents=True)
        shutil.copy(notebook, place, follow_symlinks=False)
        with self._at_work(assignment.id, student):
            Autograde(coursedir=self.course, config=self.config).start()

    def graded(self, student: str, assignment: Assignment) -> NotebookNode:
        """The notebook as autograding left it."""
        path = self.root / "autograded" / student / assignment.id / assignment.source.name
        return cast(NotebookNode, nbformat.read(path, as_version=4))

    def points(self, student: str, assignment: Assignment) -> dict[str, float]:
        """The points of a submission by graded cell, from the gradebook."""
        with self._gradebook() as book:
            notebook = book.find_submission_notebook(assignment.source.stem, assignment.id, student)
            return {grade.name: float(grade.score) for grade in notebook.grades}

    def possible(self, assignment: Assignment) -> dict[str, float]:
        """The most points of an assignment by graded cell."""
        with self._gradebook() as book:
            notebook = book.find_notebook(assignment.source.stem, assignment.id)
            return {cell.name: float(cell.max_score) for cell in notebook.grade_cells}

    def _gradebook(self) -> Any:
        from nbgrader.api import Gradebook

        return Gradebook(self.course.db_url, self.course.course_id)

    @contextmanager
    def _at_work(self, assignment: str, student: str) -> Iterator[None]:
        """Tell nbgrader what to work on, and spare the reader what it logs and warns of."""
        self.course.assignment_id, self.course.student_id = assignment, student
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            logging.disable(before)
