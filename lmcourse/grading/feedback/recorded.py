"""The recorded submissions of an assignment, and their feedback pages, made by nbgrader."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.intake.submissions import Assignment, assignments
from lmcourse.grading.lateness import lateness_of
from lmcourse.grading.result import SubmissionResult, submission_result
from lmcourse.grading.workspace import read_graded


@dataclass(frozen=True)
class Feedback:
    """Feedback on one recorded submission.

    Attributes:
        result: its points, as the gradebook has them now, and the reason.
        page: the HTML page, which may not be there yet.
    """

    result: SubmissionResult
    page: Path


class RecordedAssignment:
    """What is recorded of an assignment.

    Args:
        name: its id, such as 08-attention.
        course: the root of the course.
        db: the address of the gradebook; by default the configured one.

    Raises:
        CourseError: there is no such assignment.
    """

    def __init__(self, name: str, course: Path, db: str | None = None) -> None:
        from nbgrader.coursedir import CourseDirectory

        known = assignments(course)
        if name not in known:
            raise CourseError(f"There is no assignment {name}: it is one of {', '.join(known)}.")
        self.assignment: Assignment = known[name]
        self._config = nbgrader_configuration(course.resolve(), db)
        self._config.GenerateFeedback.force = True
        self._course = CourseDirectory(config=self._config)
        self._course.assignment_id = name

    def feedback(self, students: Sequence[str] = ()) -> list[Feedback]:
        """The feedback on everybody's work, or on that of these students, by name. No page is made.

        Raises:
            CourseError: nothing is recorded, or not of one of these students, or the gradebook cannot be read.
        """
        source = self.assignment.source
        place = Path(self._course.root, self._course.autograded_directory)
        graded = {path.parent.parent.name: path for path in sorted(place.glob(f"*/{source.parent.name}/{source.name}"))}
        for student in students:
            if student not in graded:
                raise CourseError(f"Nothing of {student} is recorded in {self.assignment.id}.")
        if not graded:
            raise CourseError(
                f"Nothing is recorded in {self.assignment.id}: `lmcourse grade submitted/ --record` first."
            )
        try:
            return [self._feedback_on(student, graded[student]) for student in students or graded]
        except Exception as error:  # whatever a database, its driver or a damaged notebook leads to
            why = str(error).partition("\n")[0]
            raise CourseError(f"What is recorded cannot be read ({why}): grade again, with --record.") from error

    def _feedback_on(self, student: str, path: Path) -> Feedback:
        source = self.assignment.source
        with self._gradebook() as book:
            notebook = book.find_notebook(source.stem, self.assignment.id)
            most = {cell.name: float(cell.max_score) for cell in [*notebook.grade_cells, *notebook.task_cells]}
            grades = book.find_submission_notebook(source.stem, self.assignment.id, student).grades
            late = lateness_of(book.find_submission(self.assignment.id, student))
            points = {grade.name: float(grade.score) for grade in grades}
        result = submission_result(student, self.assignment.id, read_graded(path), points, most, late)
        folder = Path(self._course.root, self._course.feedback_directory, student, self.assignment.id)
        return Feedback(result, folder / f"{source.stem}.html")

    def emails(self) -> dict[str, str]:
        """The students' addresses in the gradebook; somebody's id, if it is an address."""
        with self._gradebook() as book:
            found = {
                student.id: student.email or (student.id if "@" in student.id else "") for student in book.students
            }
        return {student: email for student, email in found.items() if email}

    def make_page(self, feedback: Feedback) -> bool:
        """Make a page anew, as `nbgrader generate_feedback` does; whether there is one now."""
        from nbgrader.converters import GenerateFeedback, NbGraderException

        self._course.student_id = feedback.result.student
        with _in_silence():
            try:
                GenerateFeedback(coursedir=self._course, config=self._config).start()
            except NbGraderException:
                return False
        return feedback.page.is_file()

    def _gradebook(self) -> Any:
        from nbgrader.api import Gradebook

        return Gradebook(self._course.db_url, self._course.course_id)


@contextmanager
def _in_silence() -> Iterator[None]:
    """nbgrader logs each step, and a traceback of what fails, for the one who called it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
