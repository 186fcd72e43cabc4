"""Make learners' notebooks: the release of notebook 01 with answers and other changes, without its slow open task."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.notebooks import new_code_cell

REPOSITORY = Path(__file__).resolve().parents[2]
ASSIGNMENT, NAME = "01-floating-point", "floating_point.ipynb"

WRONG = "def {name}(*args, **kwargs):\n    return -12345.678"


def config_of(course: Path, source: str = "solutions") -> Config:
    """Return nbgrader's configuration of a course, as far as finding its assignments needs it."""
    return Config({"CourseDirectory": {"root": str(course), "source_directory": source}})


@cache
def notebook_in(folder: str) -> NotebookNode:
    """Return the notebook in `solutions` or `notebooks`, without its open task."""
    notebook = nbformat.read(REPOSITORY / folder / ASSIGNMENT / NAME, as_version=4)
    tasks = [exercise.name for exercise in exercises_of(find_chapter(ASSIGNMENT)) if exercise.task]
    notebook.cells = [
        cell
        for cell in notebook.cells
        if not any(cell["id"] in (task, f"check_{task}") or f'your("{task}")' in cell.source for task in tasks)
    ]
    return notebook


def released() -> NotebookNode:
    """Return the released notebook."""
    return copy.deepcopy(notebook_in("notebooks"))


class Learner:
    """A copy of the release with only right answers, which methods can change."""

    def __init__(self) -> None:
        self.nb = released()
        for cell in self.nb.cells:
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = self.printed(cell["id"])

    @staticmethod
    def printed(name: str) -> str:
        """Return the printed solution of an exercise."""
        return str(next(cell.source for cell in notebook_in("solutions").cells if cell["id"] == name))

    @staticmethod
    def stub(name: str) -> str:
        """Return the released text of an exercise's answer cell."""
        return str(next(cell.source for cell in notebook_in("notebooks").cells if cell["id"] == name))

    def place(self, name: str) -> int:
        """Return the index of a course cell."""
        return next(place for place, cell in enumerate(self.nb.cells) if cell["id"] == name)

    def cell(self, name: str) -> NotebookNode:
        """Return a course cell."""
        return self.nb.cells[self.place(name)]

    def answer(self, name: str, text: str) -> Learner:
        """Write an answer; `{}` in it stands for the printed solution."""
        self.cell(name).source = text.replace("{}", self.printed(name))
        return self

    def scratch(self, text: str, before: str = "") -> Learner:
        """Add a cell before a course cell, or at the end."""
        self.nb.cells.insert(self.place(before) if before else len(self.nb.cells), new_code_cell(text))
        return self

    def on_top(self, text: str) -> Learner:
        """Add lines at the beginning of the course's first code cell."""
        first = next(cell for cell in self.nb.cells if cell.cell_type == "code")
        first.source = f"{text}\n{first.source}"
        return self

    def do(self, change: Callable[[NotebookNode], Any]) -> Learner:
        """Apply a function to the notebook."""
        change(self.nb)
        return self

    def hand_in(self, submitted: Path, student: str, timestamp: str = "") -> None:
        """Save the notebook where nbgrader expects it."""
        folder = submitted / student / ASSIGNMENT
        folder.mkdir(parents=True)
        (folder / NAME).write_text(json.dumps(self.nb, indent=1, ensure_ascii=False), encoding="utf-8")
        if timestamp:
            (folder / "timestamp.txt").write_text(timestamp)
