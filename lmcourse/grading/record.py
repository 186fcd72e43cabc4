"""`lmcourse grade --record`: a class graded into the course's own gradebook, as `nbgrader autograde` would do it.

A submission is recorded when its marks are in the gradebook and its graded notebook lies in `autograded/`, which comes
last and at once. Whatever stops a run leaves every other one as if it had not been begun, so the next run does what is
missing and nothing twice.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.errors import CourseError
from lmcourse.grading.batch import ExaminationSettings
from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.config import nbgrader_configuration, private_folders
from lmcourse.grading.environment import SEED, fresh_seed
from lmcourse.grading.grader import GradingOptions, grade_all
from lmcourse.grading.intake.submissions import Assignment, Submission, assignments, find_submissions
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
    submissions = find_submissions(paths, assignments(course), of_class=True)
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
        self._forced_seed_file = Path(directories.root, WORK_FOLDER, f"{assignment.id}.seed")
        self.autograded = Path(directories.root, directories.get("autograded_directory") or "autograded")

    def record(
        self, submissions: Sequence[Submission], options: GradingOptions, *, force: bool
    ) -> dict[Submission, SubmissionResult]:
        """Grade what is not recorded; the results of all.

        All are asked the same, but for what is handed in again: its author may know the hidden cases of the first time.
        """
        forced_seed = self._forced_seed(force)
        recorded = {each: graded for each in submissions if (graded := self._recorded(each, forced_seed))}
        seeds = Counter(seed_of(graded) for graded in recorded.values()) or self._seeds_of_others(submissions)
        missing = [each for each in submissions if each not in recorded]
        again = [each for each in missing if forced_seed is None and self._graded_folder(each).exists()]
        groups = {
            "first": (
                common_seed(seeds) if forced_seed is None else forced_seed,
                [each for each in missing if each not in again],
            ),
            "again": (fresh_seed(), again),
        }
        results: dict[Submission, SubmissionResult] = {}
        for name, (seed, group) in groups.items():
            workspace = self._workspace(name, options.examination_settings(seed, private_folders(self.config)))
            if group:
                ids = {each: each.student for each in group}
                results |= grade_all(workspace, ids, options, partial(self._publish, workspace))
        max_points = workspace.max_points(self.assignment)
        for each, graded in recorded.items():
            points = workspace.points(each.student, self.assignment)
            late = workspace.lateness(each.student, each)
            results[each] = submission_result(each.student, self.assignment.id, graded, points, max_points, late)
        self._forced_seed_file.unlink(missing_ok=True)
        return results

    def _seeds_of_others(self, submissions: Sequence[Submission]) -> Counter[int]:
        """How many students were judged with which seed, without those of these submissions."""
        mine = {self._graded_folder(each) for each in submissions}
        found = self.autograded.glob(f"*/{self.assignment.id}/{self.assignment.source.name}")
        notebooks = [read_graded(path) for path in found if path.parent not in mine]
        return Counter(seed_of(one) for one in notebooks if "seed" in one.metadata.get(METADATA_KEY, {}))

    def _workspace(self, name: str, settings: ExaminationSettings) -> NbgraderWorkspace:
        """A workspace in a folder of this name, whose gradebook has the assignment."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        workspace = NbgraderWorkspace(deepcopy(self.config), folder, settings)
        if not workspace.has_assignment(self.assignment):
            workspace.add_assignment(self.assignment)
        return workspace

    def _forced_seed(self, force: bool) -> int | None:
        """The seed of this run if it grades again what is recorded: its own, or that of one that was stopped, which it
        finishes; so that all submissions have it in the end."""
        file = self._forced_seed_file
        if not file.exists():
            if not force:
                return None
            new = file.with_suffix(".new")
            new.write_text(str(fresh_seed()))
            new.replace(file)
        return int(file.read_text())

    def _recorded(self, submission: Submission, seed: int | None) -> NotebookNode | None:
        """The graded notebook of just this submission, if it is there, and judged with this seed if one is given."""
        path = self._graded_folder(submission) / self.assignment.source.name
        if not submission.digest or not path.is_file():
            return None
        graded = read_graded(path)
        notes = graded.metadata.get(METADATA_KEY, {})
        if notes.get("submission_digest") != submission.digest or "seed" not in notes:
            return None
        return graded if seed in (None, notes["seed"]) else None

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


def seed_of(graded: NotebookNode) -> int:
    """The seed that a graded notebook was judged with."""
    return int(graded.metadata[METADATA_KEY]["seed"])


def common_seed(seeds: Counter[int]) -> int:
    """The seed that most submissions were judged with, or the environment's; a fresh one if there is neither."""
    return seeds.most_common(1)[0][0] if seeds and SEED not in os.environ else fresh_seed()


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
