"""nbgrader at work on one submission after the other, in folders of its own: nothing half done is in the course's."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.grading.batch.job import ExaminationJob, ExaminationSettings, job_for
from lmcourse.grading.cells import problem_of
from lmcourse.grading.config import configure
from lmcourse.grading.converter import remembering
from lmcourse.grading.examination_result import ExaminationResult
from lmcourse.grading.feedback_release import copy_secret
from lmcourse.grading.gradebook import cannot_be_opened, check_gradebook
from lmcourse.grading.intake.exporter import SubmissionExporter
from lmcourse.grading.intake.files import UnreadableError, read_file
from lmcourse.grading.intake.hand_in_time import TIMESTAMP
from lmcourse.grading.intake.submissions import Assignment, Submission
from lmcourse.grading.lateness import Lateness, lateness_of
from lmcourse.grading.preprocessors.examine_notebook import is_course_assignment, refuse_own_checks
from lmcourse.grading.preprocessors.restore_cells import RestoreCells


class NbgraderWorkspace:
    """A gradebook and nbgrader's converters, which run in this process as its only writer.

    Args:
        config: of nbgrader; its course is where the gradebook and the assignments are.
        folder: an empty folder inside of that course, where submissions are put and graded ones are left.
        settings: how notebooks are examined.
    """

    def __init__(self, config: Config, folder: Path, settings: ExaminationSettings) -> None:
        from nbgrader.coursedir import CourseDirectory

        root = Path(config.CourseDirectory.root)
        self.folder = folder
        self.settings = settings
        self.config = config
        self.config.CourseDirectory.submitted_directory = str((folder / "submitted").relative_to(root))
        self.config.CourseDirectory.autograded_directory = str((folder / "autograded").relative_to(root))
        self.config.CourseDirectory.release_directory = str((folder / "release").relative_to(root))
        self.config.ExamineNotebook.isolation = settings.isolation
        self.config.ExamineNotebook.cell_seconds = settings.cell_seconds
        self.config.ExamineNotebook.total_seconds = settings.total_seconds
        self.config.ExamineNotebook.seed = settings.seed
        self.course = CourseDirectory(config=self.config)
        self._max_points: dict[str, dict[str, float]] = {}

    @classmethod
    def temporary(cls, root: Path, settings: ExaminationSettings) -> NbgraderWorkspace:
        """A workspace with a course and a gradebook of its own, all in one folder that is thrown away afterwards."""
        config = Config()
        configure(config, root, source="source", release="release")
        folder = root / "work"
        folder.mkdir()
        return cls(config, folder, settings)

    def copy_source(self, assignment: Assignment) -> None:
        """Take over an assignment from the course into a workspace that has none."""
        shutil.copytree(
            assignment.source.parent,
            Path(self.course.root, self.course.source_directory, assignment.id),
            ignore=shutil.ignore_patterns(*self.course.ignore),
            dirs_exist_ok=True,
        )

    def has_assignment(self, assignment: Assignment) -> bool:
        """Whether the gradebook has the assignment.

        Raises:
            CourseError: the gradebook cannot be opened.
        """
        from nbgrader.api import MissingEntry

        check_gradebook(self.course.db_url)
        try:
            with self._gradebook() as book:
                book.find_notebook(assignment.source.stem, assignment.id)
        except MissingEntry:
            return False
        except Exception as error:  # whatever a database, its driver or its address leads to
            raise cannot_be_opened(error) from error
        return True

    def graded_students(self, assignment: Assignment) -> set[str]:
        """The students who have marks for an assignment in the gradebook."""
        with self._gradebook() as book:
            return {one.student.id for one in book.assignment_submissions(assignment.id) if one.notebooks}

    def add_assignment(self, assignment: Assignment) -> None:
        """Put an assignment into the gradebook.

        Raises:
            NbGraderException: nbgrader cannot work with its source notebook.
        """
        from nbgrader.converters import GenerateAssignment

        with self._working_on(assignment.id, "."):
            GenerateAssignment(coursedir=self.course, config=self.config, force=True).start()

    def examination_job(self, submission: Submission) -> ExaminationJob | None:
        """The job of examining a submission; None if there is nothing to examine."""
        assignment = submission.assignment
        if assignment is None or submission.notebook is None or not is_course_assignment(assignment.id):
            return None
        about = {"db_url": self.course.db_url, "assignment": assignment.id, "notebook": assignment.source.stem}
        resources: dict[str, Any] = {"nbgrader": about}
        exporter = SubmissionExporter(preprocessors=[RestoreCells])  # type: ignore[no-untyped-call]
        restored = exporter.preprocessed(submission.notebook, resources)
        return None if problem_of(restored) else job_for(assignment.source, restored, self.settings)

    def autograde(
        self, student: str, submission: Submission, known_result: Callable[[], ExaminationResult] | None = None
    ) -> None:
        """Grade one submission; the marks go into the workspace's gradebook.

        Args:
            student: their id, which is a name of a folder.
            submission: of an assignment that the gradebook knows.
            known_result: gives what came of examining it; by default it is examined here and now.

        Raises:
            CourseError: the assignment is not of this course, and submissions are locked in.
            Exception: nbgrader failed; a broken submission alone does not make it fail.
        """
        from nbgrader.converters import Autograde
        from nbgrader.converters.base import NbGraderException

        assert submission.assignment is not None
        refuse_own_checks(submission.assignment.id, self.settings.isolation)
        problem = self._place_submission(submission, self.folder / "submitted" / student / submission.assignment.id)
        self.config.IsolatedExporter.problem = problem
        self.config.ExamineNotebook.submission_digest = submission.digest
        self.config.ExamineNotebook.known_result = known_result
        grader = remembering(Autograde)(coursedir=self.course, config=self.config)
        with self._working_on(submission.assignment.id, student):
            try:
                grader.start()
            except NbGraderException as error:
                raise grader.error or error from error

    def _place_submission(self, submission: Submission, folder: Path) -> str:
        """Put a submission where nbgrader expects it: the notebook, under its right name, and the time it came.

        Returns:
            Why there is no notebook, or nothing.
        """
        assert submission.assignment is not None
        folder.mkdir(parents=True)
        place = folder / submission.assignment.source.name
        if submission.came.text:
            (folder / TIMESTAMP).write_text(submission.came.text)
        if submission.notebook:
            copy_secret(submission.notebook.parent, folder)
        try:
            place.write_bytes(read_file(submission.notebook) if submission.notebook else b"")
        except UnreadableError as error:
            place.touch()
            return str(error)
        return submission.problem

    def graded_folder(self, student: str, assignment: Assignment) -> Path:
        """The folder of an autograded submission."""
        return self.folder / "autograded" / student / assignment.id

    def graded(self, student: str, assignment: Assignment) -> NotebookNode:
        """The notebook as autograding left it."""
        return read_graded(self.graded_folder(student, assignment) / assignment.source.name)

    def points(self, student: str, assignment: Assignment) -> dict[str, float]:
        """The points of a submission by graded cell, from the gradebook.

        Raises:
            MissingEntry: the gradebook has none.
        """
        with self._gradebook() as book:
            notebook = book.find_submission_notebook(assignment.source.stem, assignment.id, student)
            return {grade.name: float(grade.score) for grade in notebook.grades}

    def lateness(self, student: str, submission: Submission) -> Lateness:
        """How late a graded submission is, and what that costs.

        Raises:
            MissingEntry: the gradebook has none.
        """
        assert submission.assignment is not None
        with self._gradebook() as book:
            return lateness_of(book.find_submission(submission.assignment.id, student), submission.came.note)

    def max_points(self, assignment: Assignment) -> dict[str, float]:
        """The most points of an assignment by graded cell; asked for once."""
        if assignment.id not in self._max_points:
            with self._gradebook() as book:
                notebook = book.find_notebook(assignment.source.stem, assignment.id)
                cells = [*notebook.grade_cells, *notebook.task_cells]
                self._max_points[assignment.id] = {cell.name: float(cell.max_score) for cell in cells}
        return dict(self._max_points[assignment.id])

    def _gradebook(self) -> Any:
        from nbgrader.api import Gradebook

        return Gradebook(self.course.db_url, self.course.course_id)

    @contextmanager
    def _working_on(self, assignment: str, student: str) -> Iterator[None]:
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


def read_graded(path: Path) -> NotebookNode:
    """A notebook that autograding left."""
    return cast(NotebookNode, nbformat.read(path, as_version=4))
