"""Grade submissions, several at a time on this machine or a Dask cluster, and record them with nbgrader."""

from __future__ import annotations

import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import cast

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.grading.config import gradebook, nbgrader_configuration
from lmcourse.grading.examine import Examination
from lmcourse.grading.files import UnreadableError, encoded_beside, read_file
from lmcourse.grading.intake import TIMESTAMP, Assignment, Submission, assignments, find_submissions
from lmcourse.grading.notebooks import BESIDE, METADATA_KEY, add_notes, new_notebook, problem_of, read_submission
from lmcourse.grading.preprocessors import private_folders, term_in
from lmcourse.grading.registered import changes, points_in_cells, points_of
from lmcourse.grading.restore import CourseCells, cells_in_gradebook, restored
from lmcourse.grading.result import Lateness, Mark, SubmissionResult, points_in, reports_in, submission_result
from lmcourse.grading.submission import exercises_in, fill_cells, submitted
from lmcourse.grading.workers import GradingOptions, Job, course_version, examine_job, open_executor
from lmcourse.report import check_id


def grade(paths: Sequence[Path], *, course: Path, options: GradingOptions | None = None) -> list[SubmissionResult]:
    """Grade notebook files, and folders of `student/assignment/notebook.ipynb`, without changing any file.

    Returns the results in the given order; a broken submission has 0 points and a reason. Raises CourseError if a path
    has no submission, the course has no solutions, or notebooks cannot be examined on this machine.
    """
    options, course = options or GradingOptions(), course.resolve()
    config = nbgrader_configuration(course)
    submissions = find_submissions(paths, assignments(config))
    notebooks = {each: _restored(each) for each in submissions if each.assignment}
    results = {
        each: SubmissionResult.unrecognised(each.student, each.problem) for each in submissions if not each.assignment
    }
    for each, came in _examined(notebooks, options, config):
        results[each] = _result(each, notebooks[each], came)
        options.on_progress(len(results), len(submissions))
    return [results[each] for each in submissions]


def record(
    paths: Sequence[Path],
    *,
    course: Path,
    options: GradingOptions | None = None,
    db: str | None = None,
    force: bool = False,
    again: str = "",
    by_hand: Callable[[], Iterable[str]] | None = None,
) -> list[SubmissionResult]:
    """Grade a class and write the gradebook and `autograded/`, as `nbgrader autograde` does; return the results in
    order.

    Submissions that are already recorded, by this function or by nbgrader, are graded again only if a new notebook has
    been handed in. Raises CourseError as in `grade`, or if the gradebook or a file cannot be written.

    Args:
        db: the address of the gradebook; by default the address in nbgrader's configuration. again: the name of an
        exercise to grade again for the whole class; all other marks stay. by_hand: writes marks into the gradebook
        after grading, and returns sentences for the teacher (see `rubric.marks_in`).
    """
    options, course = options or GradingOptions(), course.resolve()
    config = nbgrader_configuration(course, db)
    submissions = find_submissions(paths, assignments(config), of_class=True)
    if any(each.own for each in submissions):
        raise CourseError("--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself.")
    temporary = partial(tempfile.TemporaryDirectory, prefix=".grading-", dir=course, ignore_cleanup_errors=True)
    with _telling_storage_errors(course), temporary() as folder:  # it holds nbgrader's input
        recorder = _Recorder(config, Path(folder), options, again)
        mine = [each for each in submissions if each.assignment]
        due = {each: "" for each in mine if recorder.is_due(each, force=force)}
        due |= {each: again for each in mine if each not in due and recorder.is_asked_again(each)}
        if again and again not in due.values() and not due:
            raise CourseError(f"No recorded submission here has an exercise {again!r} to grade again.")
        before = {each: recorder.mark(each, again) for each in due if recorder.is_asked_again(each)}
        failed = recorder.record(due)
        if before:
            options.on_note(_changed_marks(again, before, {each: recorder.mark(each, again) for each in before}))
        for sentence in by_hand() if by_hand else ():
            options.on_note(sentence)
        return [failed.get(each) or recorder.recorded(each) for each in submissions]


class _Recorder:
    """Records marks with nbgrader's gradebook and converters, from copies with the file names that nbgrader expects."""

    def __init__(self, config: Config, folder: Path, options: GradingOptions, again: str) -> None:
        from nbgrader.coursedir import CourseDirectory

        self.config, self.options, self.again = config, options, again
        self._registered: set[Assignment] = set()
        root = Path(config.CourseDirectory.root)
        self._autograded = root / (config.CourseDirectory.get("autograded_directory") or "autograded")
        self._folder = folder
        config.CourseDirectory.submitted_directory = str((folder / "submitted").relative_to(root))
        self.course = CourseDirectory(config=config)

    def is_due(self, submission: Submission, *, force: bool) -> bool:
        """Return True if a submission needs grading, because it is new or has changed, or its marks are missing."""
        self._register(submission.known)
        graded = self._graded(submission)
        digest = graded.metadata.get(METADATA_KEY, {}).get("digest") if graded else None
        if force or graded is None or digest is None or digest != submission.digest or not self._marks(submission):
            return True
        return points_in(graded)[1] != self._most(submission.known)

    def is_asked_again(self, submission: Submission) -> bool:
        """Return True if one exercise of a recorded submission should be graded again."""
        graded = self._graded(submission) if self.again else None
        return graded is not None and bool(exercises_in(graded, submission.known.source, self.again))

    def record(self, due: Mapping[Submission, str]) -> dict[Submission, SubmissionResult]:
        """Examine submissions, whole or one exercise of them, and have nbgrader write their marks; return results for
        those that could not be graded."""
        notebooks = {each: _restored(each) for each in due}
        failed: dict[Submission, SubmissionResult] = {}
        for done, (each, came) in enumerate(_examined(notebooks, self.options, self.config, due), 1):
            why = ""
            try:
                if isinstance(came, Exception):
                    raise came
                self._autograde(each, self._with_known(each, came, due[each]))
            except CourseError as error:
                why = str(error)
            except Exception as error:
                if _is_storage_error(error):
                    raise
                why = _grader_failed(error)
            if why:
                failed[each] = SubmissionResult.ungraded(each.student, each.known.id, self._most(each.known), why)
            self.options.on_progress(done, len(due))
        return failed

    def mark(self, submission: Submission, exercise: str) -> float:
        """Return the recorded points of one exercise."""
        mark = self._marks(submission).get(check_id(exercise))
        return mark.points if mark else 0.0

    def recorded(self, submission: Submission) -> SubmissionResult:
        """Return the result of a recorded submission, or of one that belongs to no assignment."""
        if not submission.assignment:
            return SubmissionResult.unrecognised(submission.student, submission.problem)
        assignment, graded = submission.known, self._graded(submission)
        if graded is None:
            raise CourseError(f"{submission.student}: autograded/ has no notebook for {assignment.id}. Grade it again.")
        with gradebook(self.config) as book:
            one = book.find_submission(assignment.id, submission.student)
            late = Lateness(float(one.total_seconds_late), float(one.late_submission_penalty or 0.0), submission.note)
        marks, most = self._marks(submission), self._most(assignment)
        result = submission_result(submission.student, assignment.id, graded, marks, most, late)
        return replace(result, further=assignment.further)

    def _with_known(self, submission: Submission, came: Examination | None, only: str) -> Examination | None:
        """Return the examination of one exercise, completed with the recorded reports on the other exercises."""
        graded = self._graded(submission) if only else None
        if came is None or graded is None:
            return came
        return replace(came, reports={**reports_in(graded), only: came.reports[only]})

    def _autograde(self, submission: Submission, examination: Examination | None) -> None:
        from nbgrader.converters import Autograde
        from nbgrader.converters.base import NbGraderException

        assignment = submission.known
        problem = self._stage(submission, self._folder / "submitted" / submission.student / assignment.id)
        config = deepcopy(self.config)
        config.SubmissionExporter.problem = problem
        config.SubmissionExporter.digest = submission.digest
        config.ExamineNotebook.examined = examination
        self.course.assignment_id, self.course.student_id = assignment.id, submission.student
        messages: list[str] = []
        with silenced(messages):
            try:
                Autograde(coursedir=self.course, config=config, force=True).start()
            except NbGraderException as error:
                raise CourseError(f"nbgrader cannot grade this notebook: {' '.join(messages[-1:]) or error}") from error

    def _stage(self, submission: Submission, folder: Path) -> str:
        """Copy a submission to the place where nbgrader expects it; return why there is no notebook, or ""."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if submission.came.text:
            (folder / TIMESTAMP).write_text(submission.came.text)
        place = folder / submission.known.source.name
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
        here, known = assignment.cells, None
        with suppress(MissingEntry), gradebook(self.config) as book:
            known = cells_in_gradebook(book.find_notebook(assignment.source.stem, assignment.id))
        if known is not None and _essence(known) == _essence(here):
            return
        config = deepcopy(self.config)
        config.CourseDirectory.release_directory = str(self._folder.relative_to(self.course.root) / "release")
        directory = CourseDirectory(config=config)
        directory.assignment_id, directory.student_id = assignment.id, "."
        with silenced([]):
            GenerateAssignment(coursedir=directory, config=config, force=True).start()
        for line in changes(points_in_cells(known), points_in_cells(here)) if known else ():
            self.options.on_note(f"{assignment.id}: {line}")

    def _graded(self, submission: Submission) -> NotebookNode | None:
        """Return the graded notebook; None if it is missing or damaged."""
        place = self._autograded / submission.student / submission.known.id / submission.known.source.name
        try:
            return cast(NotebookNode, nbformat.read(place, as_version=4))
        except Exception:  # after any error of nbformat, json or the disk, the submission is graded again
            return None

    def _marks(self, submission: Submission) -> dict[str, Mark]:
        """Return the marks of a submission by graded cell; empty if the gradebook has none."""
        from nbgrader.api import MissingEntry

        assignment = submission.known
        try:
            with gradebook(self.config) as book:
                notebook = book.find_submission_notebook(assignment.source.stem, assignment.id, submission.student)
                return {one.name: Mark.of(one) for one in notebook.grades}
        except MissingEntry:
            return {}

    def _most(self, assignment: Assignment) -> dict[str, float]:
        with gradebook(self.config) as book:
            return points_of(book.find_notebook(assignment.source.stem, assignment.id))


def _restored(submission: Submission) -> NotebookNode:
    notebook, problem = new_notebook(), submission.problem
    try:
        if submission.notebook:
            notebook = read_submission(submission.notebook)
    except UnreadableError as error:
        problem = str(error)
    notebook = restored(notebook, submission.known.cells, submission.known.id, problem)
    add_notes(notebook, **{BESIDE: encoded_beside(submission.beside)})
    return notebook


def _changed_marks(exercise: str, before: Mapping[Submission, float], now: Mapping[Submission, float]) -> str:
    """Return a line that names the learners whose mark for an exercise changed: "ulp: cyd 3 → 4."."""
    changed = [f"{each.student} {mark:g} → {now[each]:g}" for each, mark in before.items() if mark != now[each]]
    return f"{exercise}: {', '.join(changed) or 'no mark changed'}."


def _essence(cells: CourseCells) -> dict[str, tuple[str, str, float | None]]:
    """Return what the gradebook must know of the cells: kind, text and points."""
    return {name: (cell.cell_type, cell.source.strip(), cell.points) for name, cell in cells.items()}


def _result(submission: Submission, notebook: NotebookNode, came: Examination | Exception | None) -> SubmissionResult:
    if isinstance(came, Exception):
        why = str(came) if isinstance(came, CourseError) else _grader_failed(came)
        return SubmissionResult.ungraded(submission.student, submission.known.id, points_in(notebook)[1], why)
    fill_cells(notebook, came)
    late = Lateness(note=submission.note)
    points, most = points_in(notebook)
    marks = {name: Mark(earned) for name, earned in points.items()}
    result = submission_result(submission.student, submission.known.id, notebook, marks, most, late)
    return replace(result, further=submission.known.further)


def _grader_failed(error: Exception) -> str:
    return f"The grader failed on this notebook ({type(error).__name__}), not its author: grade it again."


def _examined(
    notebooks: Mapping[Submission, NotebookNode],
    options: GradingOptions,
    config: Config,
    only: Mapping[Submission, str] = MappingProxyType({}),
) -> Iterator[tuple[Submission, Examination | Exception | None]]:
    """Yield each submission with its examination when it is ready; None if there is no notebook, or an exception."""
    settings = options.settings(private_folders(config), term_in(config))
    jobs: dict[Submission, Job] = {}
    for each, notebook in notebooks.items():
        if not problem_of(notebook):
            source = each.known.source.resolve()
            names = tuple(exercise.name for exercise in exercises_in(notebook, source, only.get(each, "")))
            jobs[each] = Job(submitted(notebook, source), source, names, settings, course_version())
    yield from ((each, None) for each in notebooks if each not in jobs)
    if not jobs:
        return
    with open_executor(options, len(jobs)) as executor:
        waiting: dict[Future[Examination], Submission] = {
            executor.submit(examine_job, jobs[each]): each for each in jobs
        }
        try:
            for future in as_completed(waiting):
                error = future.exception()
                yield waiting[future], cast(Exception, error) if error else future.result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def silenced(messages: list[str]) -> Iterator[None]:
    """Keep nbgrader's errors in a list, each in a line, and drop what else it says."""

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage().strip().splitlines()[-1])

    log, keep = logging.getLogger("traitlets"), Keep(logging.ERROR)
    before, handlers = log.propagate, log.handlers
    log.handlers, log.propagate = [keep], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.handlers, log.propagate = handlers, before


def _is_storage_error(error: BaseException | None) -> bool:
    """Return True if the disk or the gradebook caused the error, and not one submission."""
    while error is not None:
        if isinstance(error, OSError) or type(error).__name__ == "OperationalError":
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _telling_storage_errors(course: Path) -> Iterator[None]:
    try:
        yield
    except CourseError:
        raise
    except Exception as error:
        if _is_storage_error(error):
            first = str(error).splitlines()[0]
            raise CourseError(
                f"Nothing more can be written to {course} ({first}). Free disk space or change permissions, and run "
                "the command again. Marks recorded so far are kept."
            ) from error
        raise
