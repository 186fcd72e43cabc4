"""`lmcourse grade --record`: a class graded into the course's own gradebook, as `nbgrader autograde` would do it.

A submission is recorded when its marks are in the gradebook and its graded notebook lies in `autograded/`, which comes
last and at once. Whatever stops a run leaves every other one as if it had not been begun, so the next run does what is
missing and nothing twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.errors import CourseError
from lmcourse.grading.batch import ExaminationSettings, Pool
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.gradebook import keeping_engines
from lmcourse.grading.grader import GradingOptions, grade_all
from lmcourse.grading.intake.submissions import Assignment, Submission, assignments, find_submissions
from lmcourse.grading.private_folders import private_folders
from lmcourse.grading.result import SubmissionResult, submission_result
from lmcourse.grading.seeds import Judged, Seeds, judged_in
from lmcourse.grading.storage import telling_storage_errors
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
    pool: Pool | None = None,
) -> list[SubmissionResult]:
    """Grade a class into the gradebook and `autograded/`, one result for each submission, in order.

    What is recorded already is not graded again, unless another notebook has been handed in since.

    Args:
        paths: folders of `student/assignment/notebook.ipynb`.
        course: the root of the course, with its `nbgrader_config.py`.
        options: how.
        db: the address of the gradebook; by default the one of nbgrader's configuration.
        force: grade again what is recorded already.
        pool: workers that are there already; by default some are started, which go from one assignment to the next.

    Raises:
        CourseError: as `grade`; and a path is no folder of students, the gradebook cannot be opened, nothing more can
            be written, or another run is at work here.
    """
    course, options = course.resolve(), options or GradingOptions()
    submissions = find_submissions(paths, assignments(course), of_class=True)
    if any(each.own for each in submissions):
        raise CourseError("--record takes folders of student/assignment/notebook.ipynb, not a notebook by itself.")
    results: dict[Submission, SubmissionResult] = {}
    with (
        telling_storage_errors(course),
        keeping_engines(),
        _work_folder(course) as folder,
        nullcontext(pool) if pool else options.open_pool(len(submissions)) as workers,
    ):
        for assignment in dict.fromkeys(each.assignment for each in submissions):
            mine = [each for each in submissions if each.assignment == assignment]
            if assignment:
                recorder = AssignmentRecorder(assignment, nbgrader_configuration(course, db), folder / assignment.id)
                results |= recorder.record(mine, options, workers, force=force)
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
        self._seed_file = Path(directories.root, WORK_FOLDER, f"{assignment.id}.seed")
        self.autograded = Path(directories.root, directories.get("autograded_directory") or "autograded")

    def record(
        self, submissions: Sequence[Submission], options: GradingOptions, pool: Pool, *, force: bool
    ) -> dict[Submission, SubmissionResult]:
        """Grade what is not recorded; the results of all.

        All are asked the same, but for what is handed in again: its author may know the hidden cases of the first time.
        """
        seeds = Seeds(self._seed_file, self._judged(), submissions, force=force)
        found = {each: self._graded(each) for each in submissions if seeds.is_recorded(each)}
        workspace = self._workspace("recorded", options.examination_settings(0, private_folders(self.config)))
        in_gradebook = workspace.graded_students(self.assignment)
        recorded = {each: graded for each, graded in found.items() if graded and each.student in in_gradebook}
        groups: dict[int, list[Submission]] = {}
        for each in submissions:
            if each not in recorded:
                groups.setdefault(seeds.seed_for(each), []).append(each)
        results: dict[Submission, SubmissionResult] = {}
        for seed, group in groups.items():
            place = self._workspace(f"seed-{seed}", options.examination_settings(seed, private_folders(self.config)))
            ids = {each: each.student for each in group}
            results |= grade_all(place, ids, pool, options.on_progress, partial(self._publish, place))
        max_points = workspace.max_points(self.assignment)
        for each, graded in recorded.items():
            points = workspace.points(each.student, self.assignment)
            late = workspace.lateness(each.student, each)
            results[each] = submission_result(each.student, self.assignment.id, graded, points, max_points, late)
        if not any(result.failed for result in results.values()):
            seeds.finish()
        return results

    def _judged(self) -> dict[str, Judged]:
        return judged_in(self.autograded, self.assignment.id, self.assignment.source.name)

    def _workspace(self, name: str, settings: ExaminationSettings) -> NbgraderWorkspace:
        """A workspace in a folder of this name, whose gradebook has the assignment."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        workspace = NbgraderWorkspace(deepcopy(self.config), folder, settings)
        if not workspace.has_assignment(self.assignment):
            workspace.add_assignment(self.assignment)
        return workspace

    def _graded(self, submission: Submission) -> NotebookNode | None:
        """The graded notebook of a submission; None if it is damaged."""
        try:
            return read_graded(self._graded_folder(submission) / self.assignment.source.name)
        except Exception:  # nbformat's, json's, the disk's: it will be graded again
            return None

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
