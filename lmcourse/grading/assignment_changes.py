"""Keep the gradebook's copy of an assignment equal to its notebook, which a teacher may build again during the term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmcourse.grading.restore import CourseCells
from lmcourse.report import exercise_of


def changes(recorded: Mapping[str, float], built: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence for each exercise that left a notebook, is new in it or has other points. Both mappings have the
    points of the graded cells: in the gradebook, and in the notebook as it is built now."""
    for name, points in recorded.items():
        if name not in built:
            yield f"`{exercise_of(name)}` left the notebook: its {_points(points)} no longer count for anybody."
    for name, points in built.items():
        if name not in recorded:
            yield f"`{exercise_of(name)}` is new in the notebook and counts {_points(points)}."
        elif recorded[name] != points:
            before = f"before it counted {recorded[name]:g}. Marks given by hand stay as they are."
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
        recorded = {cell.name: cell for cell in getattr(notebook, f"{kind}_cells")}
        for cell in (cell for name, cell in recorded.items() if name not in new):
            for row in rows[kind]:
                session.query(row).filter(row.cell_id == cell.id).delete()
            session.delete(cell)
        session.commit()
        for name in (name for name in new if name not in recorded):
            cell = getattr(gradebook, f"add_{kind}_cell")(name, *where, **new[name])
            session.add_all(row(cell_id=cell.id, notebook=one) for one in notebook.submissions for row in rows[kind])
        session.commit()


def points_of(notebook: Any) -> dict[str, float]:
    """Return the points of the graded cells of nbgrader's `Notebook`, by name, while its gradebook is open."""
    return {cell.name: float(cell.max_score) for cell in [*notebook.grade_cells, *notebook.task_cells]}


def points_in_cells(cells: CourseCells) -> dict[str, float]:
    """Return the points of the graded cells among the course's, by name."""
    return {name: cell.points for name, cell in cells.items() if cell.points is not None}


def _points(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"
