"""Keep the gradebook's copy of an assignment equal to its notebook, which a teacher may build again during the term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat

from lmcourse.grading.config import gradebook, nbgrader_configuration
from lmcourse.grading.restore import CourseCells, cells_in_notebook
from lmcourse.report import exercise_of


def changes(known: Mapping[str, float], here: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence for each exercise that left a notebook, came into it or has other points. Both mappings have the
    points of the graded cells: as the gradebook knows them, and as the notebook has them."""
    for name, points in known.items():
        if name not in here:
            yield f"`{exercise_of(name)}` left the notebook: its {_points(points)} no longer count for anybody."
    for name, points in here.items():
        if name not in known:
            yield f"`{exercise_of(name)}` is new in the notebook and counts {_points(points)}."
        elif known[name] != points:
            before = f"before it counted {known[name]:g}. Marks given by hand stay as they are."
            yield f"`{exercise_of(name)}` counts {_points(points)} now; {before}"


def migrate(gradebook: Any, notebook: Any, cells: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Remove and add cells of a notebook in the gradebook that has submissions, which nbgrader itself refuses to do.

    Marks and comments of cells that stay are kept, those of removed cells are deleted, and submissions get an empty
    mark for a new cell. `cells` has the new cells by kind ("grade", "solution", "task", "source") and name.
    """
    from nbgrader.api import Comment, Grade

    session, where = gradebook.db, (notebook.name, notebook.assignment.name)
    rows = {"grade": (Grade,), "solution": (Comment,), "task": (Comment, Grade), "source": ()}
    for kind, new in cells.items():
        known = {cell.name: cell for cell in getattr(notebook, f"{kind}_cells")}
        for cell in (cell for name, cell in known.items() if name not in new):
            for row in rows[kind]:
                session.query(row).filter(row.cell_id == cell.id).delete()
            session.delete(cell)
        session.commit()
        for name in (name for name in new if name not in known):
            cell = getattr(gradebook, f"add_{kind}_cell")(name, *where, **new[name])
            session.add_all(row(cell_id=cell.id, notebook=one) for one in notebook.submissions for row in rows[kind])
        session.commit()


def coming_changes(course: Path, solutions: Mapping[str, Path]) -> Iterator[str]:
    """Yield a line for each of these assignments whose exercises differ from those that the recorded marks are for."""
    for name, known in _registered(course, solutions).items():
        here = cells_in_notebook(nbformat.read(solutions[name], as_version=4))
        if told := " ".join(changes(known, points_in_cells(here))):
            yield f"{name} has recorded marks. The next `lmcourse grade … --record` changes the gradebook: {told}"


def _registered(course: Path, solutions: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """Return the points of the graded cells in the gradebook, for each of these assignments that has submissions."""
    from nbgrader.api import MissingEntry

    found = {}
    unreadable = suppress(Exception)  # a database or its driver may raise any exception, and grading reports it
    with unreadable, gradebook(nbgrader_configuration(course), existing=True) as book:
        for name, solution in solutions.items() if book else ():
            with suppress(MissingEntry):
                if (notebook := book.find_notebook(solution.stem, name)).submissions:
                    found[name] = points_of(notebook)
    return found


def points_of(notebook: Any) -> dict[str, float]:
    """Return the points of the graded cells of nbgrader's `Notebook`, by name, while its gradebook is open."""
    return {cell.name: float(cell.max_score) for cell in [*notebook.grade_cells, *notebook.task_cells]}


def points_in_cells(cells: CourseCells) -> dict[str, float]:
    """Return the points of the graded cells among the course's, by name."""
    return {name: cell.points for name, cell in cells.items() if cell.points is not None}


def _points(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"
