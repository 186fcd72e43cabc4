"""Record marks with nbgrader's gradebook and converters, from copies with the file names that nbgrader expects."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import cast

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.grading.assignment_changes import changes, points_in_cells, points_of
from lmcourse.grading.examine import Examination
from lmcourse.grading.examined_notebook import exercises_in
from lmcourse.grading.files import UnreadableError, read_file
from lmcourse.grading.gradebook import open_gradebook, quiet_nbgrader
from lmcourse.grading.hand_in_time import TIMESTAMP
from lmcourse.grading.intake import Assignment, Submission
from lmcourse.grading.notebooks import METADATA_KEY
from lmcourse.grading.restore import CourseCells, cells_in_gradebook
from lmcourse.grading.result import Lateness, Mark, SubmissionResult, points_in, reports_in, submission_result
from lmcourse.grading.workers import GradingOptions
from lmcourse.report import check_id


class Recorder:
    """The gradebook and `autograded/` of a course; `folder` is an empty folder in the course for nbgrader's input.

    `again` is the name of an exercise that should be graded again, or "".
    """

    def __init__(self, config: Config, folder: Path, options: GradingOptions, again: str) -> None:
        from nbgrader.coursedir import CourseDirectory

        self._config, self._folder, self._options, self._again = config, folder, options, again
        self._registered: set[Assignment] = set()
        root = Path(config.CourseDirectory.root)
        self._autograded = root / (config.CourseDirectory.get("autograded_directory") or "autograded")
        config.CourseDirectory.submitted_directory = str((folder / "submitted").relative_to(root))
        self._course = CourseDirectory(config=config)

    def is_due(self, submission: Submission, *, force: bool) -> bool:
        """Return True if a submission needs grading, because it is new or has changed, or its marks are missing."""
        self._register(submission.assignment)
        graded = self._graded(submission)
        digest = graded.metadata.get(METADATA_KEY, {}).get("digest") if graded else None
        if force or graded is None or digest is None or digest != submission.digest or not self._marks(submission):
            return True
        return points_in(graded)[1] != self.max_points(submission.assignment)

    def is_asked_again(self, submission: Submission) -> bool:
        """Return True if one exercise of a recorded submission should be graded again."""
        graded = self._graded(submission) if self._again else None
        return graded is not None and bool(exercises_in(graded, submission.assignment.source, self._again))

    def points_again(self, submission: Submission) -> float:
        """Return the recorded points of the exercise that is graded again."""
        mark = self._marks(submission).get(check_id(self._again))
        return mark.points if mark else 0.0

    def max_points(self, assignment: Assignment) -> dict[str, float]:
        """Return the possible points by graded cell, as the gradebook has them."""
        with open_gradebook(self._config) as book:
            return points_of(book.find_notebook(assignment.source.stem, assignment.id))

    def record(self, submission: Submission, examination: Examination | None, only: str) -> None:
        """Have nbgrader write the marks of an examination and the graded notebook; `only` names its exercise if it is
        the only one that was examined. Raises CourseError if nbgrader fails."""
        from nbgrader.converters import Autograde

        graded = self._graded(submission) if only else None
        if examination and graded:
            examination = replace(examination, reports={**reports_in(graded), only: examination.reports[only]})
        assignment = submission.assignment
        config = deepcopy(self._config)
        config.SubmissionExporter.problem = self._stage(submission)
        config.SubmissionExporter.digest = submission.digest
        config.ExamineNotebook.examined = examination
        self._course.assignment_id, self._course.student_id = assignment.id, submission.student
        with quiet_nbgrader("nbgrader cannot grade this notebook"):
            Autograde(coursedir=self._course, config=config, force=True).start()

    def recorded(self, submission: Submission) -> SubmissionResult:
        """Return the result of a recorded submission."""
        assignment, graded = submission.assignment, self._graded(submission)
        if graded is None:
            raise CourseError(f"{submission.student}: autograded/ has no notebook for {assignment.id}. Grade it again.")
        with open_gradebook(self._config) as book:
            one = book.find_submission(assignment.id, submission.student)
            late = Lateness(float(one.total_seconds_late), float(one.late_submission_penalty or 0.0), submission.note)
        return submission_result(submission, graded, self._marks(submission), self.max_points(assignment), late)

    def _stage(self, submission: Submission) -> str:
        """Copy a submission to the place where nbgrader expects it; return why there is no notebook, or ""."""
        folder = self._folder / "submitted" / submission.student / submission.assignment.id
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if submission.time.text:
            (folder / TIMESTAMP).write_text(submission.time.text)
        place = folder / submission.assignment.source.name
        try:
            place.write_bytes(read_file(submission.notebook) if submission.notebook else b"")
        except UnreadableError as error:
            place.touch()
            return str(error)
        return submission.problem

    def _register(self, assignment: Assignment) -> None:
        """Announce an assignment to the gradebook, or change the gradebook's copy if the notebook has changed."""
        from nbgrader.api import MissingEntry
        from nbgrader.converters import GenerateAssignment
        from nbgrader.coursedir import CourseDirectory

        if assignment in self._registered:
            return
        self._registered.add(assignment)
        built, before = assignment.cells, None
        with suppress(MissingEntry), open_gradebook(self._config) as book:
            before = cells_in_gradebook(book.find_notebook(assignment.source.stem, assignment.id))
        if before is not None and _essence(before) == _essence(built):
            return
        config = deepcopy(self._config)
        config.CourseDirectory.release_directory = str(self._folder.relative_to(self._course.root) / "release")
        directory = CourseDirectory(config=config)
        directory.assignment_id, directory.student_id = assignment.id, "."
        with quiet_nbgrader(f"nbgrader cannot make the release of {assignment.id}"):
            GenerateAssignment(coursedir=directory, config=config, force=True).start()
        for line in changes(points_in_cells(before), points_in_cells(built)) if before else ():
            self._options.on_note(f"{assignment.id}: {line}")

    def _graded(self, submission: Submission) -> NotebookNode | None:
        """Return the graded notebook; None if it is missing or damaged."""
        place = self._autograded / submission.student / submission.assignment.id / submission.assignment.source.name
        with suppress(Exception):  # after any error of nbformat, json or the disk, the submission is graded again
            return cast(NotebookNode, nbformat.read(place, as_version=4))
        return None

    def _marks(self, submission: Submission) -> dict[str, Mark]:
        """Return the marks of a submission by graded cell; empty if the gradebook has none."""
        from nbgrader.api import MissingEntry

        assignment = submission.assignment
        with suppress(MissingEntry), open_gradebook(self._config) as book:
            notebook = book.find_submission_notebook(assignment.source.stem, assignment.id, submission.student)
            return {one.name: Mark.of(one) for one in notebook.grades}
        return {}


def _essence(cells: CourseCells) -> dict[str, tuple[str, str, float | None]]:
    """Return what the gradebook must know of the cells: kind, text and points."""
    return {name: (cell.cell_type, cell.source.strip(), cell.points) for name, cell in cells.items()}


def is_storage_error(error: BaseException | None) -> bool:
    """Return True if the disk or the gradebook caused the error, and not one submission."""
    while error is not None:
        if isinstance(error, OSError) or type(error).__name__ == "OperationalError":
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def storage_errors_explained(course: Path) -> Iterator[None]:
    """Raise CourseError in place of an error of the disk or the gradebook."""
    try:
        yield
    except Exception as error:
        if isinstance(error, CourseError) or not is_storage_error(error):
            raise
        raise CourseError(
            f"Nothing more can be written to {course} ({str(error).splitlines()[0]}). Free disk space or change "
            "permissions, and run the command again. Marks recorded so far are kept."
        ) from error
