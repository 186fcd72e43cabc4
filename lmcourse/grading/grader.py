"""`lmcourse grade`: notebooks are examined by many workers, and their marks are written by one writer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.batch import Job, Setting, open_pool, processors
from lmcourse.grading.environment import run_seed
from lmcourse.grading.examined import Examined
from lmcourse.grading.intake.submissions import Submission, assignments, find_submissions
from lmcourse.grading.result import Result, nothing, result_of
from lmcourse.grading.sandbox import choose_isolation
from lmcourse.grading.workroom import Workroom


@dataclass(frozen=True)
class Options:
    """How to grade.

    Attributes:
        isolation: "bubblewrap", which is the default, or "process".
        workers: notebooks that are examined at once on this machine; by default one for each processor.
        scheduler: the address of a Dask cluster that examines them instead.
        cell_seconds: for one cell.
        total_seconds: for a whole notebook.
        told: called after each submission with how many are done and how many there are.
    """

    isolation: str | None = None
    workers: int | None = None
    scheduler: str | None = None
    cell_seconds: float = 120.0
    total_seconds: float = 900.0
    told: Callable[[int, int], None] = lambda done, of: None

    def setting(self, seed: int) -> Setting:
        """What workers have to know of it.

        Raises:
            CourseError: submissions cannot be isolated like that here. Of a cluster its workers say so.
        """
        elsewhere = self.scheduler is not None and self.isolation is None
        isolation = "bubblewrap" if elsewhere else choose_isolation(self.isolation)
        return Setting(isolation, seed, self.cell_seconds, self.total_seconds)


def grade(paths: Sequence[Path], *, course: Path, options: Options | None = None) -> list[Result]:
    """Grade notebooks without touching a file of theirs: one result for each, in the order they were given.

    Args:
        paths: notebook files, and folders of `student/assignment/notebook.ipynb`.
        course: the root of the course, which holds `solutions/`.
        options: how.

    Raises:
        CourseError: a path leads to no submission, the course has no solutions, or notebooks cannot be examined here.
            A submission that is broken in any way is no error: it is a result with 0 points and a reason.
    """
    options = options or Options()
    submissions = find_submissions(paths, assignments(course))
    setting = options.setting(run_seed())
    with tempfile.TemporaryDirectory(prefix="lmcourse-grade-", ignore_cleanup_errors=True) as folder:
        room = Workroom.temporary(Path(folder).resolve(), setting)
        for assignment in dict.fromkeys(each.assignment for each in submissions if each.assignment):
            room.copy_source(assignment)
            room.prepare(assignment)
        # A student goes by a name that is safe as a folder, and that no other one has.
        names = {submission: f"s{number}" for number, submission in enumerate(submissions)}
        results = dict(grade_all(room, names, options))
    return [results[submission] for submission in submissions]


def grade_all(
    room: Workroom,
    names: Mapping[Submission, str],
    options: Options,
    keep: Callable[[Submission], None] = lambda submission: None,
) -> Iterator[tuple[Submission, Result]]:
    """Grade submissions in a room, each result as soon as it is there.

    Args:
        room: its gradebook knows the assignments.
        names: the submissions, and what their students are called in the gradebook.
        options: how.
        keep: called when the marks of a submission are written.
    """
    for done, (submission, examined) in enumerate(_examined(room, list(names), options), 1):
        yield submission, _written(room, submission, names[submission], examined, keep)
        options.told(done, len(names))


def _examined(
    room: Workroom, submissions: Sequence[Submission], options: Options
) -> Iterator[tuple[Submission, Examined | Exception | None]]:
    """What came of each submission; None of those that cannot be examined, which come last."""
    without: list[Submission] = []

    def jobs() -> Iterator[tuple[Submission, Job]]:
        for submission in submissions:
            if job := room.job(submission):
                yield submission, job
            else:
                without.append(submission)

    with open_pool(min(options.workers or processors(), max(len(submissions), 1)), options.scheduler) as pool:
        yield from pool.examine(jobs())
    for submission in without:
        yield submission, None


def _there(examined: Examined | None) -> Examined:
    """Raises RuntimeError: nbgrader asks for a notebook that had nothing to examine."""
    if examined is None:
        raise RuntimeError("not examined")
    return examined


def _written(
    room: Workroom,
    submission: Submission,
    name: str,
    examined: Examined | Exception | None,
    keep: Callable[[Submission], None],
) -> Result:
    """The result of a submission, after its marks are in the gradebook."""
    assignment = submission.assignment
    if assignment is None:
        return Result(submission.student, "", 0.0, 0.0, reason=submission.problem)
    possible = room.possible(assignment)
    try:
        if isinstance(examined, Exception):
            raise examined
        room.autograde(name, submission, lambda: _there(examined))
        graded, points = room.graded(name, assignment), room.points(name, assignment)
        keep(submission)
    except CourseError as error:
        return nothing(submission.student, assignment.id, possible, str(error))
    except Exception as error:
        why = f"The grader failed on this notebook ({type(error).__name__}), not its author: grade it again."
        return nothing(submission.student, assignment.id, possible, why)
    return result_of(submission.student, assignment.id, graded, points, possible)
