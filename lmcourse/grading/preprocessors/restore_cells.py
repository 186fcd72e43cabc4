"""nbgrader preprocessor: restore the course's own cells as they were handed out.

What a submitted notebook says about itself is a claim; the gradebook is the truth. Learners copy cells,
delete them, turn them into text and move them about, mostly by accident. Every cell is built anew here: the
text from the submission (for a locked cell, from the gradebook), everything else from the gradebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.api import Gradebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor

from lmcourse.grading.cells import add_notes, new_code_cell, new_markdown_cell, new_notebook
from lmcourse.grading.intake.notebook import size_problem
from lmcourse.report import CHECK_PREFIX

KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Rebuilds a submission from its texts and the gradebook. It comes first."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """The notebook with each of the course's cells exactly once, and no metadata of its own."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            course_cells = _course_cells(gradebook.find_notebook(about["notebook"], about["assignment"]))
        cells = _joined(nb.cells, course_cells)
        claimed_ids = [_claimed_id(cell, course_cells) for cell in cells]
        problem = resources.get("problem", "")
        if not problem and course_cells and not any(claimed_ids):
            problem = (
                f"No cell of this notebook belongs to {about['assignment']}: is it another notebook, "
                "or were all its cells made anew? Copy your answers into a fresh copy and hand that in."
            )
        restored, missing = _restored(cells, claimed_ids, course_cells)
        if too_much := size_problem(restored):  # what was put back counts: it is read once more
            problem = f"The notebook {too_much}"
            restored, missing = _restored([], [], course_cells)
        add_notes(restored, problem=problem, put_back=missing)
        return restored, resources


def _restored(
    cells: list[NotebookNode], claimed_ids: list[str | None], course_cells: Mapping[str, _CourseCell]
) -> tuple[NotebookNode, list[str]]:
    """The notebook built anew, and the cells that were missing in it."""
    originals = _places_of_originals(cells, claimed_ids, course_cells)
    rebuilt = [
        _rebuilt(cell, course_cells[name] if name and originals[name] == place else None)
        for place, (cell, name) in enumerate(zip(cells, claimed_ids, strict=True))
    ]
    missing = [name for name in course_cells if name not in originals and course_cells[name].cell.locked]
    _put_back(rebuilt, missing, course_cells)
    return new_notebook(cells=rebuilt, metadata={"kernelspec": KERNELSPEC}), missing


class _CourseCell:
    """A cell of the course and what nbgrader has to know of it."""

    def __init__(self, cell: SourceCell, points: float | None, *, solution: bool, task: bool) -> None:
        self.cell = cell
        self.nbgrader: dict[str, Any] = {
            "schema_version": 3,
            "grade_id": cell.name,
            "grade": points is not None and not task,
            "solution": solution,
            "locked": cell.locked,
            "task": task,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
        }
        if points is not None:
            self.nbgrader["points"] = points


def _course_cells(notebook: Any) -> dict[str, _CourseCell]:
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    solutions = {cell.name for cell in notebook.solution_cells}
    tasks = {cell.name for cell in notebook.task_cells}
    return {
        cell.name: _CourseCell(cell, points.get(cell.name), solution=cell.name in solutions, task=cell.name in tasks)
        for cell in notebook.source_cells
    }


def _claimed_id(cell: NotebookNode, course_cells: Mapping[str, _CourseCell]) -> str | None:
    """The id of the course's cell that this one says it is, if there is such a cell."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    return name if isinstance(name, str) and name in course_cells else None


def _joined(cells: list[NotebookNode], course_cells: Mapping[str, _CourseCell]) -> list[NotebookNode]:
    """The cells, with each answer in one piece: JupyterLab makes two cells of one ("Split Cell") that both say they are
    the course's."""
    joined: list[NotebookNode] = []
    for cell in cells:
        name = _claimed_id(cell, course_cells)
        before = joined[-1] if joined else None
        if before and name and _is_piece(before, name, course_cells) and _is_piece(cell, name, course_cells):
            joined[-1] = NotebookNode(before | {"source": f"{before.source}\n{cell.source}"})
        else:
            joined.append(cell)
    return joined


def _is_piece(cell: NotebookNode, name: str, course_cells: Mapping[str, _CourseCell]) -> bool:
    """Whether a cell is a learner's answer to this exercise, or part of it."""
    is_answer = course_cells[name].nbgrader["solution"] and _claimed_id(cell, course_cells) == name
    return is_answer and cell.cell_type == "code" and not _is_untouched(cell, course_cells[name])


def _is_untouched(cell: NotebookNode, course_cell: _CourseCell) -> bool:
    """Whether a cell says what it said when it was handed out."""
    return bool(cell.source.strip() == course_cell.cell.source.strip())


def _places_of_originals(
    cells: list[NotebookNode], claimed_ids: list[str | None], course_cells: Mapping[str, _CourseCell]
) -> dict[str, int]:
    """Where the original of each cell is, among its copies.

    Of an answer, the first that is not as it was handed out. Of a check, the first below its answer: a copy further up
    would judge what is not there yet.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(claimed_ids):
        if name is not None:
            places.setdefault(name, []).append(place)
    found = {}
    for name, candidates in places.items():
        if not course_cells[name].cell.locked:
            edited = [place for place in candidates if not _is_untouched(cells[place], course_cells[name])]
            found[name] = (edited or candidates)[0]
    for name, candidates in places.items():
        if name not in found:
            answer = found.get(name.removeprefix(CHECK_PREFIX), -1)
            found[name] = next((place for place in candidates if place > answer), candidates[-1])
    return found


def _rebuilt(cell: NotebookNode, course_cell: _CourseCell | None) -> NotebookNode:
    """A cell with nothing in it but text, and the course's metadata if it is one of the course's cells."""
    code = cell.cell_type == "code"
    text = cell.source
    metadata: dict[str, Any] = {}
    if course_cell is not None:
        code = course_cell.cell.cell_type == "code"
        text = course_cell.cell.source if course_cell.cell.locked else text
        metadata = {"nbgrader": dict(course_cell.nbgrader)}
    elif cell.cell_type == "raw":
        text = "".join(f"    {line}\n" for line in text.splitlines())  # shown as it is, never run as HTML
    build = new_code_cell if code else new_markdown_cell
    rebuilt: NotebookNode = build(text, metadata=metadata, id=cell["id"])
    if not code and course_cell is None and "attachments" in cell:
        rebuilt["attachments"] = cell["attachments"]
    return rebuilt


def _put_back(cells: list[NotebookNode], missing: list[str], course_cells: Mapping[str, _CourseCell]) -> None:
    """Insert the cells that were deleted: a check below its answer, or at the end if that is gone too."""
    for name in missing:
        course_cell = course_cells[name]
        build = new_code_cell if course_cell.cell.cell_type == "code" else new_markdown_cell
        ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in cells]
        answer = name.removeprefix(CHECK_PREFIX)
        place = ids.index(answer) + 1 if answer in ids else len(cells)
        cells.insert(place, build(course_cell.cell.source, metadata={"nbgrader": dict(course_cell.nbgrader)}))
