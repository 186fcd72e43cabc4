"""`lmcourse grade`: one notebook or a class, graded by nbgrader without touching a file of theirs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from lmcourse.grading.notes import CHECK, KEY
from lmcourse.grading.reasons import reason
from lmcourse.grading.result import Result
from lmcourse.grading.submissions import Assignment, Submission, assignments, find_submissions
from lmcourse.grading.workroom import Workroom


def grade(paths: Sequence[Path], *, course: Path) -> list[Result]:
    """Grade notebooks, one result for each, in the order they were given.

    Args:
        paths: notebook files, and folders of `student/assignment/notebook.ipynb`.
        course: the root of the course, which holds `solutions/`.

    Raises:
        CourseError: a path leads to no submission, or the course has no solutions. A submission that is broken in any
            way is no error: it is a result with 0 points and a reason.
    """
    submissions = find_submissions(paths, assignments(course))
    with tempfile.TemporaryDirectory(prefix="lmcourse-grade-", ignore_cleanup_errors=True) as folder:
        room = Workroom(Path(folder).resolve())
        for assignment in dict.fromkeys(each.assignment for each in submissions if each.assignment):
            room.prepare(assignment)
        return [_grade_one(room, f"s{number}", each) for number, each in enumerate(submissions)]


def _grade_one(room: Workroom, name: str, submission: Submission) -> Result:
    """The result of one submission. Its student goes by a name that is safe as a folder and in a glob."""
    assignment = submission.assignment
    if assignment is None:
        return Result(submission.student, "", 0.0, 0.0, reason=submission.problem)
    possible = _by_exercise(room.possible(assignment))
    if submission.notebook is None:
        return _nothing(submission.student, assignment, possible, submission.problem)
    try:
        room.autograde(name, assignment, submission.notebook)
        graded = room.graded(name, assignment)
        points = _by_exercise(room.points(name, assignment))
    except Exception as error:
        why = f"The grader failed on this notebook ({type(error).__name__}), not its author: grade it again."
        return _nothing(submission.student, assignment, possible, why)
    return Result(
        submission.student,
        assignment.id,
        sum(points.values()),
        sum(possible.values()),
        {name: points[name] for name in possible},
        reason(graded, points, possible),
        graded.metadata.get(KEY, {}).get("seed"),
    )


def _nothing(student: str, assignment: Assignment, possible: dict[str, float], why: str) -> Result:
    return Result(student, assignment.id, 0.0, sum(possible.values()), dict.fromkeys(possible, 0.0), why)


def _by_exercise(points: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix(CHECK): value for name, value in points.items()}
