"""`lmcourse grade --record`: a class graded into the course's own gradebook, as `nbgrader autograde` would do it.

A submission is recorded when its marks are in the gradebook and its graded notebook lies in `autograded/`, which comes
last and at once. Whatever stops a run leaves every other one as if it had not been begun, so the next run does what is
missing and nothing twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from copy import deepcopy
from pathlib import Path

from filelock import FileLock, Timeout
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.errors import CourseError
from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.config import configure
from lmcourse.grading.environment import SEED, run_seed
from lmcourse.grading.grader import GradingOptions, grade_all
from lmcourse.grading.intake.submissions import (
    Assignment,
    Submission,
    assignments,
    find_submissions,
)
from lmcourse.grading.result import SubmissionResult, submission_result
from lmcourse.grading.workspace import NbgraderWorkspace, read_graded

WORK_FOLDER = ".grading"
"""In the course's folder: what a run is at work on. What a run that was killed left there, the next one removes."""


def record(
    paths: Sequence[Path],
    *,
    course: Path,
    options: GradingOptions | None = None,
    db: str | None = None,
    force: bool = False,
) -> list[SubmissionResult]:
    """Grade a class into the gradebook and `autograded/`, one result for each submission, in order.

    What is recorded already is not graded again, unless another notebook has been handed in since.

    Args:
        paths: folders of `student/assignment/notebook.ipynb`.
        course: the root of the course, with its `nbgrader_config.py`.
        options: how.
        db: the address of the gradebook; by default the one of nbgrader's configuration.
        force: grade again what is recorded already.

    Raises:
        CourseError: as `grade`; and a path is no folder of students, the gradebook cannot be opened, or another run is
            at work here.
    """
    course, options = course.resolve(), options or GradingOptions()
    submissions = find_submissions(paths, assignments(course))
    if any(each.own for each in submissions):
        raise CourseError("--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself.")
    results: dict[Submission, SubmissionResult] = {}
    with _work_folder(course) as folder:
        for assignment in dict.fromkeys(each.assignment for each in submissions):
            mine = [each for each in submissions if each.assignment == assignment]
            if assignment:
                recorder = AssignmentRecorder(assignment, nbgrader_configuration(course, db), folder / assignment.id)
                results |= recorder.record(mine, options, force=force)
            else:
                nothing = [SubmissionResult(each.student, "", 0.0, 0.0, reason=each.problem) for each in mine]
                results |= zip(mine, nothing, strict=True)
    return [results[each] for each in submissions]


class AssignmentRecorder:
    """Records the marks of one assignment in a gradebook, and its graded notebooks in a folder.

    Args:
        assignment: which.
        config: nbgrader's.
        folder: for what is not recorded yet.
    """

    def __init__(self, assignment: Assignment, config: Config, folder: Path) -> None:
        self.assignment = assignment
        self.config = config
        self.folder = folder
        directories = config.CourseDirectory
        self.autograded = Path(directories.root, directories.get("autograded_directory") or "autograded")

    def record(
        self, submissions: Sequence[Submission], options: GradingOptions, *, force: bool
    ) -> dict[Submission, SubmissionResult]:
        """Grade what is not recorded; the results of all."""
        recorded = {} if force else {each: graded for each in submissions if (graded := self._recorded(each))}
        seeds = [graded.metadata[METADATA_KEY]["seed"] for graded in recorded.values()]
        seed = run_seed() if SEED in os.environ or not seeds else int(seeds[0])  # all are asked the same
        self.folder.mkdir()
        workspace = NbgraderWorkspace(deepcopy(self.config), self.folder, options.examination_settings(seed))
        if not workspace.has_assignment(self.assignment):
            workspace.add_assignment(self.assignment)
        missing = {each: each.student for each in submissions if each not in recorded}
        results = dict(grade_all(workspace, missing, options, lambda each: self._publish(workspace, each)))
        max_points = workspace.max_points(self.assignment)
        for each, graded in recorded.items():
            points = workspace.points(each.student, self.assignment)
            results[each] = submission_result(each.student, self.assignment.id, graded, points, max_points)
        return results

    def _recorded(self, submission: Submission) -> NotebookNode | None:
        """The graded notebook of just this submission, if it is there."""
        path = self._graded_folder(submission) / self.assignment.source.name
        if not submission.digest or not path.is_file():
            return None
        graded = read_graded(path)
        notes = graded.metadata.get(METADATA_KEY, {})
        return graded if notes.get("submission_digest") == submission.digest and "seed" in notes else None

    def _publish(self, workspace: NbgraderWorkspace, submission: Submission) -> None:
        """Put a graded notebook in its place, in one step. One that was there before goes."""
        place, previous = self._graded_folder(submission), self.folder / "previous"
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rename(previous)
        workspace.graded_folder(submission.student, self.assignment).rename(place)
        if previous.exists():
            shutil.rmtree(previous)

    def _graded_folder(self, submission: Submission) -> Path:
        return self.autograded / submission.student / self.assignment.id


def nbgrader_configuration(course: Path, db: str | None = None) -> Config:
    """nbgrader's configuration in a course, as `nbgrader autograde` would find it there.

    Args:
        course: its root.
        db: the address of the gradebook, in place of the configured one.
    """
    from nbgrader.apps.baseapp import NbGrader

    config = Config()
    configure(config, course)
    with chdir(course):
        app = NbGrader()
        app.initialize([], root=str(course))
    config.merge(app.config)
    config.CourseDirectory.root = str(course)
    if db is not None:
        config.CourseDirectory.db_url = db
    return config


@contextmanager
def _work_folder(course: Path) -> Iterator[Path]:
    """A folder to work in, for one run at a time."""
    folder = course / WORK_FOLDER
    folder.mkdir(exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            work = folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            yield work
            shutil.rmtree(work, ignore_errors=True)
    except Timeout as error:
        raise CourseError(f"Somebody is grading into {course} just now: wait until they are done.") from error
