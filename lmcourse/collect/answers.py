"""A learner's answers in their saved notebooks: which are theirs and pass, which are wrong, which are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmcourse.authoring.problems import read_sources
from lmcourse.authoring.regions import student_text
from lmcourse.course import Chapter
from lmcourse.errors import CourseError
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.files import UnreadableError
from lmcourse.grading.grader import grade
from lmcourse.grading.notebooks import read_submission
from lmcourse.grading.result import SubmissionResult
from lmcourse.grading.workers import GradingOptions

State = Literal["passes", "wrong", "missing"]


@dataclass(frozen=True)
class Answer:
    """A learner's answer to an exercise whose answer is a function or a class.

    Attributes:
        chapter: whose notebook it is in.
        exercise: what it answers.
        state: how `lmcourse grade` judges it.
        reason: what is wrong with it, in one line.
    """

    chapter: Chapter
    exercise: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook, and where its answers are.

    Attributes:
        cells: its code, cell by cell.
        places: by exercise, the index of the cell with its answer.
    """

    cells: tuple[str, ...]
    places: dict[str, int]


def read_notebook(path: Path) -> Notebook:
    """A saved notebook.

    Raises:
        CourseError: it cannot be read.
    """
    try:
        cells = [cell for cell in read_submission(path).cells if cell.cell_type == "code"]
    except UnreadableError as error:
        raise CourseError(str(error)) from None
    return Notebook(tuple(cell.source for cell in cells), _places([_mark(cell) for cell in cells]))


def _mark(cell: Any) -> str | None:
    said = cell.metadata.get("nbgrader", {})
    return str(said.get("grade_id")) if said.get("solution") else None


def _places(names: Sequence[str | None]) -> dict[str, int]:
    """The first cell counts: a learner's copy of one carries the same id."""
    return {name: index for index, name in reversed(list(enumerate(names))) if name}


def printed_notebooks(chapters: Sequence[Chapter], root: Path) -> dict[Chapter, Notebook]:
    """The notebooks with the course's own answers, as their sources have them.

    Raises:
        CourseError: the course's folder has no `solutions/`, or they have mistakes.
    """
    if not (root / "solutions").is_dir():
        raise CourseError(f"Answers are put to the test beside solutions/, which {root} lacks: collect in a clone.")
    found = {}
    for chapter, source in read_sources(chapters, root).items():
        cells = [cell for cell in source.cells if cell.kind == "code"]
        found[chapter] = Notebook(tuple(cell.text for cell in cells), _places([cell.exercise for cell in cells]))
    return found


def judge(
    notebooks: dict[Chapter, tuple[Path, Notebook]],
    printed: dict[Chapter, Notebook],
    root: Path,
    options: GradingOptions | None = None,
) -> list[Answer]:
    """Every answer of these notebooks that is a function or a class, judged as `lmcourse grade` does.

    Notebooks that are as they were handed out are not run.

    Raises:
        CourseError: notebooks cannot be graded here, or the grader failed on one.
    """
    started = {chapter: path for chapter, (path, notebook) in notebooks.items() if _started(notebook, printed[chapter])}
    graded = grade(list(started.values()), course=root, options=options) if started else []
    results = dict(zip(started, graded, strict=True))
    for chapter, result in results.items():
        if result.failed:
            raise CourseError(f"{chapter.id}: {result.reason}")
    return [answer for chapter in notebooks for answer in _answers(chapter, results.get(chapter))]


def _started(notebook: Notebook, printed: Notebook) -> bool:
    """Whether a cell for an answer holds something else than when it was handed out."""
    stubs = {name: student_text(printed.cells[place]).strip() for name, place in printed.places.items()}
    return any(notebook.cells[place].strip() != stubs.get(name) for name, place in notebook.places.items())


def _answers(chapter: Chapter, result: SubmissionResult | None) -> list[Answer]:
    found = []
    for exercise in exercises_of(chapter):
        if exercise.value:
            continue
        earned = result.exercises.get(exercise.name, 0.0) if result else 0.0
        if result is None or exercise.name not in result.answers:
            found.append(Answer(chapter, exercise.name, "missing"))
        elif earned >= exercise.points:
            found.append(Answer(chapter, exercise.name, "passes"))
        else:
            report = result.reports.get(exercise.name)
            points = f"{earned:g} of {exercise.points} points"
            reason = f"{points}: {report.diagnosis}" if report and report.diagnosis else points
            found.append(Answer(chapter, exercise.name, "wrong", reason))
    return found
