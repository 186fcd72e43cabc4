"""Read a learner's progress from the reports in their saved notebooks.

This only reads JSON and does not run code, so `lmcourse status` answers at once. An exercise counts as not started if
its check has never run, or ran on an unchanged cell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.course.parts import core_length, minutes_in
from lmcourse.report import CHECK_PREFIX, REPORT_MIME, check_id

State = Literal["not started", "in progress", "done"]

CORE_DONE = "You have done the core of every notebook here."


@dataclass(frozen=True)
class ExerciseProgress:
    """Progress in one exercise: earned and possible points, whether an answer was ever checked, and whether it belongs
    to the core of its notebook. `text` is the id of the cell with its text, if that cell has one.
    """

    name: str
    points: float
    max_points: float
    started: bool
    core: bool = True
    text: str = ""

    @property
    def state(self) -> State:
        """The state of the exercise: not started, in progress or done."""
        if not self.started:
            return "not started"
        return "done" if self.points >= self.max_points else "in progress"


@dataclass(frozen=True)
class NotebookProgress:
    """Progress in one of the learner's notebooks, in the order of its cells; `problem` says why it cannot be read.

    `minutes` are those in its first cell, of the core and of Further if it has both. `saved` is the time of its file.
    """

    chapter: Chapter
    path: Path
    exercises: tuple[ExerciseProgress, ...] = ()
    problem: str = ""
    minutes: tuple[int, ...] = ()
    saved: float = 0.0

    @property
    def started(self) -> list[int]:
        """The indices of the exercises that have been started."""
        return [index for index, item in enumerate(self.exercises) if item.started]

    def next_exercise(self, *, core: bool) -> int | None:
        """Return the index of the exercise of a part to continue with: after the last one started, if any is open."""
        wanted = [index for index, item in enumerate(self.exercises) if item.core is core and item.state != "done"]
        last = max(self.started, default=0)
        return min(wanted, key=lambda index: (index < last, index), default=None)

    @property
    def parts(self) -> list[list[ExerciseProgress]]:
        """The exercises of the core, then those of Further if there are any."""
        core, further = ([item for item in self.exercises if item.core is core] for core in (True, False))
        return [core, further] if further else [core]

    @property
    def earned(self) -> str:
        """The points as a text: "3 / 7", or "core 3 / 5, Further 0 / 2"."""
        names = ("core ", "Further ") if len(self.parts) > 1 else ("",)
        return ", ".join(
            f"{name}{sum(item.points for item in part):g} / {sum(item.max_points for item in part):g}"
            for name, part in zip(names, self.parts, strict=True)
        )

    @property
    def points(self) -> float:
        """The earned points of the notebook."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def max_points(self) -> float:
        """The possible points of the notebook."""
        return sum(exercise.max_points for exercise in self.exercises)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as plain data."""
        return {
            "id": self.chapter.id,
            "title": self.chapter.title,
            "points": self.points,
            "max_points": self.max_points,
            "exercises": {
                item.name: {"points": item.points, "max_points": item.max_points, "state": item.state}
                for item in self.exercises
            },
            "further": [item.name for item in self.exercises if not item.core],
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Progress:
    """Progress in all of the learner's notebooks."""

    notebooks: tuple[NotebookProgress, ...]

    @property
    def points(self) -> float:
        """The points earned so far."""
        return sum(notebook.points for notebook in self.notebooks)

    @property
    def max_points(self) -> float:
        """The possible points of all notebooks in the folder."""
        return sum(notebook.max_points for notebook in self.notebooks)

    @property
    def core_done(self) -> bool:
        """True if there is a Further, and every exercise of every core is done, in notebooks that can all be read."""
        exercises = [item for notebook in self.notebooks for item in notebook.exercises]
        states = {item.state for item in exercises if item.core}
        readable = not any(notebook.problem for notebook in self.notebooks)
        return readable and states == {"done"} and len(exercises) > sum(item.core for item in exercises)

    @property
    def next_exercise(self) -> tuple[NotebookProgress, int] | None:
        """The notebook to continue with and the index of its exercise, or None if every exercise is done.

        Every core comes before Further, and the started notebook that was saved last before later and earlier ones.
        """
        started = [index for index, notebook in enumerate(self.notebooks) if notebook.started]
        first = max(started, key=lambda index: self.notebooks[index].saved, default=0)
        in_order = (*self.notebooks[first:], *self.notebooks[:first])
        found = ((notebook, notebook.next_exercise(core=core)) for core in (True, False) for notebook in in_order)
        return next(((notebook, index) for notebook, index in found if index is not None), None)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as plain data."""
        notebooks = [notebook.to_json() for notebook in self.notebooks]
        return {"points": self.points, "max_points": self.max_points, "notebooks": notebooks}


def read_progress(notebooks: Path) -> Progress:
    """Read the progress in the folder `notebooks`; additional copies of a notebook do not count."""
    paths = [(chapter, notebooks / chapter.id / f"{chapter.topic}.ipynb") for chapter in CHAPTERS]
    return Progress(tuple(read_notebook_progress(chapter, path) for chapter, path in paths if path.is_file()))


def read_notebook_progress(chapter: Chapter, path: Path) -> NotebookProgress:
    """Return the progress in one notebook. If it cannot be read, `problem` says why; no exception is raised."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = [(str(cell["cell_type"]), "".join(cell.get("source", ""))) for cell in cells]
        core = core_length(texts)
        exercises: dict[str, ExerciseProgress] = {}
        text, saved = "", path.stat().st_mtime
        for place, cell in enumerate(cells):
            if cell["cell_type"] == "markdown":
                text = str(cell.get("id", ""))
            for found in _graded(cell, core=place < core, text=text):
                # A copied check cell has the same id: the better report counts.
                known = exercises.get(found.name)
                if known is None or (found.started, found.points) > (known.started, known.points):
                    exercises[found.name] = found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a notebook"
        return NotebookProgress(chapter, path, problem=f"{path} cannot be read: {reason}.")
    minutes = minutes_in(texts[0][1]) if texts else ()
    return NotebookProgress(chapter, path, tuple(exercises.values()), minutes=minutes, saved=saved)


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


def _graded(cell: dict[str, Any], *, core: bool, text: str) -> Iterator[ExerciseProgress]:
    """Yield the exercise that a cell checks, or nothing if it is not a check cell."""
    said = cell["metadata"].get("nbgrader") or {}
    name = str(said.get("grade_id", ""))
    if not said.get("grade") or not name.startswith(CHECK_PREFIX):
        return
    exercise, most = name.removeprefix(CHECK_PREFIX), float(said["points"])
    report = _report(cell)
    points = float(report.get("points", 0.0))
    fair = min(max(points, 0.0), most) if math.isfinite(points) else 0.0
    yield ExerciseProgress(exercise, fair, most, started=bool(report.get("answered", False)), core=core, text=text)
