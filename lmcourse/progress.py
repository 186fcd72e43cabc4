"""A learner's progress, read from the reports in their saved notebooks.

Nothing is run and nothing but JSON is read, so `lmcourse status` answers at once. A check that was never
run, or was run on an untouched cell, counts as not started.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmcourse.course import CHAPTERS, Chapter
from lmcourse.report import CHECK_PREFIX, REPORT_MIME, check_id

State = Literal["not started", "in progress", "done"]


@dataclass(frozen=True)
class ExerciseProgress:
    """Progress in one exercise: points earned and possible, and whether an answer was ever checked."""

    name: str
    points: float
    max_points: float
    started: bool

    @property
    def state(self) -> State:
        """The state of the exercise: not started, in progress or done."""
        if not self.started:
            return "not started"
        return "done" if self.points >= self.max_points else "in progress"


@dataclass(frozen=True)
class NotebookProgress:
    """Progress in one notebook of the learner's copy.

    Attributes:
        chapter: its place in the course.
        path: its file.
        exercises: in the order of its cells.
        problem: why it cannot be read, in one line; empty if it can.
    """

    chapter: Chapter
    path: Path
    exercises: tuple[ExerciseProgress, ...] = ()
    problem: str = ""

    @property
    def points(self) -> float:
        """Points earned in it."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def max_points(self) -> float:
        """Points it can earn."""
        return sum(exercise.max_points for exercise in self.exercises)

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "id": self.chapter.id,
            "title": self.chapter.title,
            "points": self.points,
            "max_points": self.max_points,
            "exercises": {
                item.name: {"points": item.points, "max_points": item.max_points, "state": item.state}
                for item in self.exercises
            },
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Progress:
    """The whole learner's copy, notebook by notebook."""

    notebooks: tuple[NotebookProgress, ...]

    @property
    def points(self) -> float:
        """Points earned so far."""
        return sum(notebook.points for notebook in self.notebooks)

    @property
    def max_points(self) -> float:
        """Points that the notebooks in the folder can earn."""
        return sum(notebook.max_points for notebook in self.notebooks)

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain data."""
        notebooks = [notebook.to_json() for notebook in self.notebooks]
        return {"points": self.points, "max_points": self.max_points, "notebooks": notebooks}


def read_progress(notebooks: Path) -> Progress:
    """Read the progress in the folder `notebooks`; copies that a learner made of a notebook do not count."""
    paths = [(chapter, notebooks / chapter.id / f"{chapter.topic}.ipynb") for chapter in CHAPTERS]
    return Progress(tuple(read_notebook_progress(chapter, path) for chapter, path in paths if path.is_file()))


def read_notebook_progress(chapter: Chapter, path: Path) -> NotebookProgress:
    """Progress in one notebook. Never raises: if it cannot be read, `problem` says why."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        exercises: dict[str, ExerciseProgress] = {}
        for cell in cells:
            for found in _graded(cell):
                # A learner's copy of a check cell carries the same id: the better of the two counts.
                known = exercises.get(found.name)
                if known is None or (found.started, found.points) > (known.started, known.points):
                    exercises[found.name] = found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a notebook"
        return NotebookProgress(chapter, path, problem=f"{path} cannot be read: {reason}.")
    return NotebookProgress(chapter, path, tuple(exercises.values()))


def saved_report(path: Path, exercise: str) -> dict[str, Any]:
    """Return the report on an exercise in a saved notebook, as JSON; None if there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        marks = [cell["metadata"].get("nbgrader") or {} for cell in cells]
        found = [cell for cell, mark in zip(cells, marks, strict=True) if mark.get("grade_id") == check_id(exercise)]
        return max(map(_report, found), key=lambda report: float(report.get("points", 0.0)), default={})
    return {}


def _report(cell: dict[str, Any]) -> dict[str, Any]:
    reports = [output.get("data", {}).get(REPORT_MIME) for output in cell.get("outputs", [])]
    return next((report for report in reversed(reports) if report), {})


def _graded(cell: dict[str, Any]) -> Iterator[ExerciseProgress]:
    """Return the exercise that this cell checks, if it is a check."""
    said = cell["metadata"].get("nbgrader") or {}
    name = str(said.get("grade_id", ""))
    if not said.get("grade") or not name.startswith(CHECK_PREFIX):
        return
    exercise, most = name.removeprefix(CHECK_PREFIX), float(said["points"])
    report = _report(cell)
    points = float(report.get("points", 0.0))
    fair = min(max(points, 0.0), most) if math.isfinite(points) else 0.0
    yield ExerciseProgress(exercise, fair, most, started=bool(report.get("answered", False)))
