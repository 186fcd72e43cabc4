"""Notebooks in which every answer is right: the printed solutions, and the variants of each exercise in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.proof.answers import variant_text

PRINTED = "as printed"
"""What the printed solution is called among the right answers."""


def right_notebooks(chapter: Chapter, solution: Path) -> Iterator[tuple[dict[str, str], NotebookNode]]:
    """Yield the solved notebook, then one with each exercise's first variant, one with the second, and so on.

    An exercise that has no more variants keeps its printed answer. Each notebook comes with the names of the answers
    that are new in it, by exercise.
    """
    exercises = exercises_of(chapter)
    yield {exercise.name: PRINTED for exercise in exercises}, nbformat.read(solution, as_version=4)
    for number in range(max(len(exercise.variants) for exercise in exercises)):
        notebook = nbformat.read(solution, as_version=4)
        cells = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
        new = {}
        for exercise in exercises:
            for variant in exercise.variants[number : number + 1]:
                cells[exercise.name].source = variant_text(exercise, variant)
                new[exercise.name] = variant.name
        yield new, notebook
