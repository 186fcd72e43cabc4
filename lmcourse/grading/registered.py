"""Compare the assignments in the gradebook with their notebooks, which a teacher may have built again since then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import nbformat

from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.restore import cells_in_notebook


def other_exercises(course: Path, solutions: Mapping[str, Path]) -> Iterator[str]:
    """Yield a line for each assignment whose graded cells in the gradebook are not those of its solution notebook."""
    for name, known in _registered(course, solutions).items():
        cells = cells_in_notebook(nbformat.read(solutions[name], as_version=4))
        here = {one for one, cell in cells.items() if cell.nbgrader.get("grade")}
        if known != here:
            yield (
                f"{name}: the gradebook has {len(known)} graded cells, and this notebook has {len(here)}. Grading uses "
                f"those of the gradebook until you run `nbgrader db assignment remove {name} --force`, which deletes "
                "the marks of this assignment. Then grade again."
            )


def _registered(course: Path, solutions: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the names of the graded cells in the gradebook, for each of these assignments that it has."""
    from nbgrader.api import Gradebook, MissingEntry
    from nbgrader.coursedir import CourseDirectory

    directory = CourseDirectory(config=nbgrader_configuration(course))
    file = directory.db_url.removeprefix("sqlite:///")
    if file != directory.db_url and not Path(file).is_file():
        return {}  # opening it would create it
    found = {}
    unreadable = suppress(Exception)  # a database or its driver may raise any exception, and grading reports it
    with unreadable, Gradebook(directory.db_url, directory.course_id) as book:
        for name, solution in solutions.items():
            with suppress(MissingEntry):
                notebook = book.find_notebook(solution.stem, name)
                found[name] = {cell.name for cell in [*notebook.grade_cells, *notebook.task_cells]}
    return found
