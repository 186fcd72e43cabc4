"""`lmcourse grade`: notebooks are examined by many workers, and their marks are written by one writer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.batch import ExaminationJob, ExaminationSettings, Pool, available_cpus, open_pool
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.environment import run_seed
from lmcourse.grading.examination_result import ExaminationResult
from lmcourse.grading.gradebook import keeping_engines
from lmcourse.grading.intake.submissions import Submission, assignments, find_submissions
from lmcourse.grading.private_folders import private_folders
from lmcourse.grading.result import SubmissionResult, submission_result, ungraded_result
from lmcourse.grading.sandbox import choose_isolation
from lmcourse.grading.storage import StorageError, storage_problem, telling_storage_errors
from lmcourse.grading.workspace import NbgraderWorkspace


@dataclass(frozen=True)
class GradingOptions:
    """Options of a grading run.

    Attributes:
        isolation: "bubblewrap", which is the default, or "process".
        workers: notebooks that are examined at once on this machine; by default one for each processor.
        scheduler: the address of a Dask cluster that examines them instead.
        cell_seconds: for one cell.
        total_seconds: for a whole notebook.
        on_progress: called after each submission with how many are done and how many there are.
    """

    isolation: str | None = None
    workers: int | None = None
    scheduler: str | None = None
    cell_seconds: float = 120.0
    total_seconds: float = 900.0
    on_progress: Callable[[int, int], None] = lambda done, of: None

    def examination_settings(self, seed: int, private: tuple[str, ...] = ()) -> ExaminationSettings:
        """The options that workers need.

        Args:
            seed: of the hidden cases.
            private: folders that no notebook may see.

        Raises:
            CourseError: submissions cannot be isolated like that here. Of a cluster its workers say so.
        """
        elsewhere = self.scheduler is not None and self.isolation is None
        isolation = "bubblewrap" if elsewhere else choose_isolation(self.isolation)
        return ExaminationSettings(isolation, seed, self.cell_seconds, self.total_seconds, private)

    def open_pool(self, submissions: int) -> AbstractContextManager[Pool]:
        """The workers for this many submissions."""
        return open_pool(min(self.workers or available_cpus(), max(submissions, 1)), self.scheduler)


def grade(
    paths: Sequence[Path], *, course: Path, options: GradingOptions | None = None, pool: Pool | None = None
) -> list[SubmissionResult]:
    """Grade notebooks without touching a file of theirs: one result for each, in the order they were given.

    Args:
        paths: notebook files, and folders of `student/assignment/notebook.ipynb`.
        course: the root of the course, which holds `solutions/`.
        options: how.
        pool: workers that are there already; by default some are started.

    Raises:
        CourseError: a path leads to no submission, the course has no solutions, or notebooks cannot be examined here.
            A submission that is broken in any way is no error: it is a result with 0 points and a reason.
    """
    options = options or GradingOptions()
    submissions = find_submissions(paths, assignments(course))
    settings = options.examination_settings(run_seed(), private_folders(nbgrader_configuration(course.resolve())))
    with (
        telling_storage_errors(Path(tempfile.gettempdir())),
        keeping_engines(),
        tempfile.TemporaryDirectory(prefix="lmcourse-grade-", ignore_cleanup_errors=True) as folder,
        nullcontext(pool) if pool else options.open_pool(len(submissions)) as workers,
    ):
        workspace = NbgraderWorkspace.temporary(Path(folder).resolve(), settings)
        for assignment in dict.fromkeys(each.assignment for each in submissions if each.assignment):
            workspace.copy_source(assignment)
            workspace.add_assignment(assignment)
        # A student goes by a name that is safe as a folder, and that no other one has.
        student_ids = {submission: f"s{number}" for number, submission in enumerate(submissions)}
        results = dict(grade_all(workspace, student_ids, workers, options.on_progress))
    return [results[submission] for submission in submissions]


def grade_all(
    workspace: NbgraderWorkspace,
    student_ids: Mapping[Submission, str],
    pool: Pool,
    on_progress: Callable[[int, int], None],
    on_graded: Callable[[Submission], None] = lambda submission: None,
) -> Iterator[tuple[Submission, SubmissionResult]]:
    """Grade submissions in a workspace, each result as soon as it is there.

    Args:
        workspace: its gradebook knows the assignments.
        student_ids: the submissions, and what their students are called in the gradebook.
        pool: what examines them.
        on_progress: called after each submission with how many are done and how many there are.
        on_graded: called when the marks of a submission are written.
    """
    for done, (submission, examined) in enumerate(_examine(workspace, list(student_ids), pool), 1):
        yield submission, _write_marks(workspace, submission, student_ids[submission], examined, on_graded)
        on_progress(done, len(student_ids))


def _examine(
    workspace: NbgraderWorkspace, submissions: Sequence[Submission], pool: Pool
) -> Iterator[tuple[Submission, ExaminationResult | Exception | None]]:
    """The examination of each submission; None of those that cannot be examined, which come last."""
    not_examined: list[Submission] = []

    def jobs() -> Iterator[tuple[Submission, ExaminationJob]]:
        # One assignment after the other: a worker gets ready anew for each that it comes to.
        for submission in sorted(submissions, key=lambda each: each.assignment.id if each.assignment else ""):
            if job := workspace.examination_job(submission):
                yield submission, job
            else:
                not_examined.append(submission)

    yield from pool.examine(jobs())
    for submission in not_examined:
        yield submission, None


def _known(examined: ExaminationResult | None) -> ExaminationResult:
    """Raises RuntimeError: nbgrader asks for a notebook that had nothing to examine."""
    if examined is None:
        raise RuntimeError("not examined")
    return examined


def _write_marks(
    workspace: NbgraderWorkspace,
    submission: Submission,
    student_id: str,
    examined: ExaminationResult | Exception | None,
    on_graded: Callable[[Submission], None],
) -> SubmissionResult:
    """The result of a submission, after its marks are in the gradebook."""
    assignment = submission.assignment
    if assignment is None:
        return SubmissionResult(submission.student, "", 0.0, 0.0, reason=submission.problem)
    max_points = workspace.max_points(assignment)

    try:
        if isinstance(examined, Exception):
            raise examined
        workspace.autograde(student_id, submission, lambda: _known(examined))
        graded, points = workspace.graded(student_id, assignment), workspace.points(student_id, assignment)
        late = workspace.lateness(student_id, submission)
        on_graded(submission)
    except CourseError as error:
        return ungraded_result(submission.student, assignment.id, max_points, str(error))
    except Exception as error:
        if problem := storage_problem(error, Path(workspace.course.root)):
            raise StorageError(problem) from error
        why = f"The grader failed on this notebook ({type(error).__name__}), not its author: grade it again."
        return ungraded_result(submission.student, assignment.id, max_points, why)
    return submission_result(submission.student, assignment.id, graded, points, max_points, late)
