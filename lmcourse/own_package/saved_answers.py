"""Read a learner's answers from saved notebooks, and judge them as passing, wrong or missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.files import UnreadableError
from lmcourse.grading.notebooks import read_submission
from lmcourse.report import CHECK_PREFIX

if TYPE_CHECKING:
    from lmcourse.grading.result import SubmissionResult
    from lmcourse.grading.workers import GradingOptions

State = Literal["passes", "wrong", "missing"]

NOT_RELEASED = "not in this release"
"""The reason for an exercise that a teacher left out, for example with `lmcourse build --core`."""


@dataclass(frozen=True)
class Answer:
    """A learner's function or class for an exercise, with the verdict of `lmcourse grade` and a reason in one line."""

    chapter: Chapter
    exercise: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook by cell and, for each exercise, the index of the cell with its answer; `asked` are the
    exercises with an answer or a check.
    """

    cells: tuple[str, ...]
    places: dict[str, int]
    asked: frozenset[str]


def _notebook(cells: Sequence[tuple[str, str | None]], checked: Iterable[str] = ()) -> Notebook:
    """Return the notebook with these texts, answers and checks. If two cells have the same answer, the first counts."""
    places = {name: index for index, (_, name) in reversed(list(enumerate(cells))) if name}
    return Notebook(tuple(text for text, _ in cells), places, frozenset({*places, *checked}))


def read_notebook(path: Path) -> Notebook:
    """Read a saved notebook; raise CourseError if it cannot be read."""
    try:
        cells = [cell for cell in read_submission(path).cells if cell.cell_type == "code"]
    except UnreadableError as error:
        raise CourseError(str(error)) from None
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    ids = [str(mark.get("grade_id")) for mark in marks]
    names = [one if mark.get("solution") else None for one, mark in zip(ids, marks, strict=True)]
    checked = [one.removeprefix(CHECK_PREFIX) for one in ids if one.startswith(CHECK_PREFIX)]
    return _notebook([(cell.source, name) for cell, name in zip(cells, names, strict=True)], checked)


def printed_notebooks(chapters: Sequence[Chapter], root: Path) -> dict[Chapter, Notebook]:
    """Return the notebooks with the course's own answers; raise CourseError if their sources are missing or wrong."""
    # imported here because `load_parts`, which notebooks import, does not need it
    from lmcourse.authoring.problems import read_sources

    if not (root / "solutions").is_dir():
        raise CourseError(f"{root} has no solutions/, which checking answers needs: run lmcourse package in a clone.")
    return {
        chapter: _notebook([(cell.text, cell.exercise) for cell in source.cells if cell.kind == "code"])
        for chapter, source in read_sources(chapters, root).items()
    }


def judge(
    notebooks: dict[Chapter, tuple[Path, Notebook]],
    printed: dict[Chapter, Notebook],
    root: Path,
    options: GradingOptions | None = None,
) -> list[Answer]:
    """Judge all answers in these notebooks that are functions or classes, as `lmcourse grade` does.

    Unchanged notebooks are not run. Raises CourseError if notebooks cannot be graded on this machine.
    """
    from lmcourse.grading.grader import grade  # imported here because it imports nbgrader

    started = {chapter: path for chapter, (path, notebook) in notebooks.items() if _started(notebook, printed[chapter])}
    graded = grade(list(started.values()), course=root, options=options) if started else []
    results = dict(zip(started, graded, strict=True))
    for chapter, result in results.items():
        if result.failed:
            raise CourseError(f"{chapter.id}: {result.reason}")
    return [
        answer
        for chapter, (_, notebook) in notebooks.items()
        for answer in _answers(chapter, notebook, results.get(chapter))
    ]


def _started(notebook: Notebook, printed: Notebook) -> bool:
    from lmcourse.authoring.source import student_text

    stubs = {name: student_text(printed.cells[place]).strip() for name, place in printed.places.items()}
    return any(notebook.cells[place].strip() != stubs.get(name) for name, place in notebook.places.items())


def _answers(chapter: Chapter, notebook: Notebook, result: SubmissionResult | None) -> list[Answer]:
    found = []
    for exercise in exercises_of(chapter):
        if exercise.value:
            continue
        earned = result.exercises.get(exercise.name, 0.0) if result else 0.0
        if result is None or exercise.name not in result.answers:
            reason = "" if exercise.name in notebook.asked else NOT_RELEASED
            found.append(Answer(chapter, exercise.name, "missing", reason))
        elif earned >= exercise.points:
            found.append(Answer(chapter, exercise.name, "passes"))
        else:
            report = result.reports.get(exercise.name)
            points = f"{earned:g} of {exercise.points} points"
            reason = f"{points}: {report.diagnosis}" if report and report.diagnosis else points
            found.append(Answer(chapter, exercise.name, "wrong", reason))
    return found
