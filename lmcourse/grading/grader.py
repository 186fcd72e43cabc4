"""Grade submissions, several at a time on this machine or a Dask cluster, and record them with nbgrader."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import cast

from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.grading.examine import Examination, SubmittedCode
from lmcourse.grading.examined_notebook import exercises_in, fill_cells, submitted_code
from lmcourse.grading.files import UnreadableError, encoded_beside
from lmcourse.grading.gradebook import nbgrader_configuration
from lmcourse.grading.intake import Submission, course_assignments, find_submissions
from lmcourse.grading.notebooks import BESIDE, add_notes, new_notebook, problem_of, read_submission
from lmcourse.grading.preprocessors import private_folders, term_in
from lmcourse.grading.recorder import Recorder, is_storage_error, storage_errors_explained
from lmcourse.grading.restore import restored
from lmcourse.grading.result import Lateness, Mark, SubmissionResult, points_in, submission_result
from lmcourse.grading.workers import GradingOptions, course_version, examine_job, open_executor


def grade(paths: Sequence[Path], *, course: Path, options: GradingOptions | None = None) -> list[SubmissionResult]:
    """Grade notebook files, and folders of `student/assignment/notebook.ipynb`, without changing any file.

    Returns the results in the given order; a broken submission has 0 points and a reason. Raises CourseError if a path
    has no submission, the course has no solutions, or notebooks cannot be examined on this machine.
    """
    options, course = options or GradingOptions(), course.resolve()
    config = nbgrader_configuration(course)
    submissions = find_submissions(paths, course_assignments(config))
    notebooks = {each: _restored(each) for each in submissions if each.recognised}
    results = {each: SubmissionResult.unrecognised(each) for each in submissions if not each.recognised}
    for each, examination in _examined(notebooks, options, config):
        results[each] = _result(each, notebooks[each], examination)
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
    submissions = find_submissions(paths, course_assignments(config), of_class=True)
    if any(each.own for each in submissions):
        raise CourseError("--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself.")
    temporary = partial(tempfile.TemporaryDirectory, prefix=".grading-", dir=course, ignore_cleanup_errors=True)
    with storage_errors_explained(course), temporary() as folder:  # it holds nbgrader's input
        recorder = Recorder(config, Path(folder), options, again)
        mine = [each for each in submissions if each.recognised]
        due = {each: "" for each in mine if recorder.is_due(each, force=force)}
        due |= {each: again for each in mine if each not in due and recorder.is_asked_again(each)}
        if again and not due:
            raise CourseError(f"No recorded submission here has an exercise {again!r} to grade again.")
        before = {each: recorder.points_again(each) for each in due if recorder.is_asked_again(each)}
        failed = _recorded(due, recorder, options, config)
        if before:
            pairs = {each.student: (points, recorder.points_again(each)) for each, points in before.items()}
            changed = [f"{student} {old:g} → {new:g}" for student, (old, new) in pairs.items() if old != new]
            options.on_note(f"{again}: {', '.join(changed) or 'no mark changed'}.")
        for sentence in by_hand() if by_hand else ():
            options.on_note(sentence)
        others = {each: SubmissionResult.unrecognised(each) for each in submissions if not each.recognised}
        return [(failed | others).get(each) or recorder.recorded(each) for each in submissions]


def _recorded(
    due: Mapping[Submission, str], recorder: Recorder, options: GradingOptions, config: Config
) -> dict[Submission, SubmissionResult]:
    """Examine submissions, whole or one exercise of them, and record their marks; return results for those that could
    not be graded."""
    notebooks = {each: _restored(each) for each in due}
    failed: dict[Submission, SubmissionResult] = {}
    for done, (each, examination) in enumerate(_examined(notebooks, options, config, due), 1):
        try:
            if isinstance(examination, Exception):
                raise examination
            recorder.record(each, examination, due[each])
        except Exception as error:
            if is_storage_error(error) and not isinstance(error, CourseError):
                raise
            failed[each] = _ungraded(each, recorder.max_points(each.assignment), error)
        options.on_progress(done, len(due))
    return failed


def _restored(submission: Submission) -> NotebookNode:
    notebook, problem = new_notebook(), submission.problem
    try:
        if submission.notebook:
            notebook = read_submission(submission.notebook)
    except UnreadableError as error:
        problem = str(error)
    notebook = restored(notebook, submission.assignment.cells, submission.assignment.id, problem)
    add_notes(notebook, **{BESIDE: encoded_beside(submission.beside)})
    return notebook


def _result(
    submission: Submission, notebook: NotebookNode, examination: Examination | Exception | None
) -> SubmissionResult:
    if isinstance(examination, Exception):
        return _ungraded(submission, points_in(notebook)[1], examination)
    fill_cells(notebook, examination)
    points, most = points_in(notebook)
    marks = {name: Mark(earned) for name, earned in points.items()}
    return submission_result(submission, notebook, marks, most, Lateness(note=submission.note))


def _ungraded(submission: Submission, max_points: Mapping[str, float], error: Exception) -> SubmissionResult:
    why = f"The grader failed on this notebook ({type(error).__name__}), not its author: grade it again."
    why = str(error) if isinstance(error, CourseError) else why
    return SubmissionResult.ungraded(submission, max_points, why)


def _examined(
    notebooks: Mapping[Submission, NotebookNode],
    options: GradingOptions,
    config: Config,
    only: Mapping[Submission, str] = MappingProxyType({}),
) -> Iterator[tuple[Submission, Examination | Exception | None]]:
    """Yield each submission with its examination when it is ready; None if there is no notebook, or an exception."""
    settings = options.settings(private_folders(config), term_in(config))
    jobs: dict[Submission, tuple[SubmittedCode, Path, list[str]]] = {}
    for each, notebook in notebooks.items():
        if not problem_of(notebook):
            source = each.assignment.source.resolve()
            names = [exercise.name for exercise in exercises_in(notebook, source, only.get(each, ""))]
            jobs[each] = (submitted_code(notebook, source), source, names)
    yield from ((each, None) for each in notebooks if each not in jobs)
    if not jobs:
        return
    with open_executor(options, len(jobs)) as executor:
        version = course_version()
        waiting = {executor.submit(examine_job, *job, settings, version): each for each, job in jobs.items()}
        try:
            for future in as_completed(waiting):
                error = future.exception()
                yield waiting[future], cast(Exception, error) if error else future.result()
        finally:
            for future in waiting:
                future.cancel()
