"""Put the course's own cells back into a submission, in their released form.

A submitted notebook's own metadata cannot be trusted; the course's notebook can. Learners copy cells, delete them, turn
them into text and move them, mostly by accident. So every cell is rebuilt: the text comes from the submission (for a
locked cell, from the course), and everything else from the course.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading import notebooks
from lmcourse.report import CHECK_PREFIX

KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}

_NOT_RELEASED = re.compile(
    r"^[ \t]*### BEGIN (HIDDEN TESTS|MARK SCHEME)\n.*?^[ \t]*### END \1(\n|\Z)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class CourseCell:
    """A cell of the course that has an nbgrader id: its text, its kind, and nbgrader's metadata."""

    source: str
    cell_type: str
    nbgrader: Mapping[str, Any]

    @property
    def texts(self) -> tuple[str, str]:
        """The text as released, without hidden tests and mark schemes, and as in the solution notebook."""
        return _NOT_RELEASED.sub("", self.source).strip(), self.source.strip()

    @property
    def points(self) -> float | None:
        """The points of a graded cell or a task; None for other cells."""
        graded = self.nbgrader.get("grade") or self.nbgrader.get("task")
        return float(self.nbgrader["points"]) if graded else None


CourseCells = Mapping[str, CourseCell]  # the course's cells by nbgrader id, in order


def cells_in_notebook(notebook: NotebookNode, released: NotebookNode | None = None) -> dict[str, CourseCell]:
    """Return the course's cells from its solution notebook, with the stubs from the release if there is one."""
    stubs = {notebooks.grade_id(cell): cell.source for cell in released.cells} if released else {}
    found = {}
    for cell in notebook.cells:
        if name := notebooks.grade_id(cell):
            marks = cell.metadata["nbgrader"] | {"cell_type": cell.cell_type}
            source = stubs.get(name, "") if marks.get("solution") else cell.source
            found[name] = CourseCell(source, cell.cell_type, marks)
    return found


def cells_in_gradebook(notebook: Any) -> dict[str, CourseCell]:
    """Return the course's cells from nbgrader's `Notebook`, while its gradebook is open."""
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    solutions, tasks = ({cell.name for cell in cells} for cells in (notebook.solution_cells, notebook.task_cells))
    found = {}
    for cell in notebook.source_cells:
        name = cell.name
        marks = {"schema_version": 3, "grade_id": name, "cell_type": cell.cell_type, "checksum": cell.checksum}
        marks |= {"grade": name in points and name not in tasks, "solution": name in solutions, "task": name in tasks}
        marks |= {"locked": cell.locked} | ({"points": points[name]} if name in points else {})
        found[name] = CourseCell(cell.source, cell.cell_type, marks)
    return found


def restored(submitted: NotebookNode, course: CourseCells, assignment: str, problem: str = "") -> NotebookNode:
    """Return a submission with each of the course's cells exactly once, and without the submission's metadata.

    If there is no notebook, `problem` says why.
    """
    cells = _joined(submitted.cells, course)
    claimed = [_claimed(cell, course) for cell in cells]
    by_name = _defined_by(cells, claimed, course)
    claimed = [by_name.get(place, name) for place, name in enumerate(claimed)]
    if not problem and course and not any(claimed):
        problem = (
            f"No cell of this notebook belongs to {assignment}, and none defines the name of an exercise. Is it "
            "another notebook? Copy the answers into a fresh copy and hand that in."
        )
    notebook, missing, edited = _rebuilt(cells, claimed, course)
    if too_large := notebooks.size_problem(notebook):  # restored cells count, too, because the notebook is read again
        problem = f"The notebook {too_large}"
        notebook, missing, edited = _rebuilt([], [], course)
    ids = {notebooks.grade_id(cell) for cell in notebook.cells}
    checks = [name for name in missing if name.startswith(CHECK_PREFIX)]
    absent = [name for name in checks if (answer := name.removeprefix(CHECK_PREFIX)) in course and answer not in ids]
    put_back = [name for name in missing if name not in absent]
    notes = {"put_back": put_back, "edited": edited, "absent": absent, "by_name": [*by_name.values()]}
    notebooks.add_notes(notebook, problem=problem, **notes)
    for key in (notebooks.HANDED_IN, notebooks.SEALED):
        if found := [cell.metadata[key] for cell in submitted.cells if key in cell.metadata]:
            notebooks.add_notes(notebook, **{key: found[-1]})
    return notebook


def _rebuilt(
    cells: Sequence[NotebookNode], claimed: Sequence[str], course: CourseCells
) -> tuple[NotebookNode, list[str], list[str]]:
    """Return the rebuilt notebook, the missing locked cells, and the edited locked cells."""
    places = _places_of_originals(cells, claimed, course)
    built, edited = [], []
    for place, (cell, name) in enumerate(zip(cells, claimed, strict=True)):
        original = course[name] if name and places[name] == place else None
        built.append(_cell(cell, original))
        if original and original.nbgrader["locked"] and cell.source.strip() not in original.texts:
            edited.append(name)
    missing = [name for name, one in course.items() if name not in places and one.nbgrader["locked"]]
    for name in missing:
        _put_back(built, name, course[name])
    return notebooks.new_notebook(cells=built, metadata={"kernelspec": KERNELSPEC}), missing, edited


def _claimed(cell: NotebookNode, course: CourseCells) -> str:
    """Return the id of the course's cell that this cell claims to be or, without metadata, its own cell id."""
    name = notebooks.grade_id(cell) or str(cell.get("id", ""))
    return name if name in course else ""


def _defined_by(cells: Sequence[NotebookNode], claimed: Sequence[str], course: CourseCells) -> dict[int, str]:
    """Return the answers that no cell claims to be, by the place of the last cell that defines their name: a cell that
    was made anew has no metadata."""
    from lmcourse.grading.cells import read_cell  # imported here because it loads torch

    answers = {name for name, one in course.items() if one.nbgrader["solution"] and name not in claimed}
    found: dict[str, int] = {}
    for place, cell in enumerate(cells) if answers else ():
        if cell.cell_type == "code" and not claimed[place]:
            found |= dict.fromkeys(answers & read_cell(0, cell.source).defined.keys(), place)
    return {place: name for name, place in found.items()}


def _joined(cells: Sequence[NotebookNode], course: CourseCells) -> list[NotebookNode]:
    """Join answers that JupyterLab's "Split Cell" divided into two cells with the same nbgrader id."""
    joined: list[NotebookNode] = []
    for cell in cells:
        name = _claimed(cell, course)
        pieces = [*joined[-1:], cell] if name and course[name].nbgrader["solution"] else []
        if len(pieces) == 2 and all(_is_piece(piece, name, course) for piece in pieces):
            joined[-1] = NotebookNode(joined[-1] | {"source": f"{joined[-1].source}\n{cell.source}"})
        else:
            joined.append(cell)
    return joined


def _is_piece(cell: NotebookNode, name: str, course: CourseCells) -> bool:
    return cell.cell_type == "code" and _claimed(cell, course) == name and not _is_untouched(cell, course[name])


def _is_untouched(cell: NotebookNode, original: CourseCell) -> bool:
    return bool(cell.source.strip() == original.source.strip())


def _places_of_originals(cells: Sequence[NotebookNode], claimed: Sequence[str], course: CourseCells) -> dict[str, int]:
    """Return the place of each original cell among its copies.

    For an answer this is the first copy that differs from the released text. For a check it is the first copy after its
    answer, because an earlier copy would run before the answer exists.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(claimed):
        if name:
            places.setdefault(name, []).append(place)
    found = {}
    for name, candidates in places.items():
        if not course[name].nbgrader["locked"]:
            edited = [place for place in candidates if not _is_untouched(cells[place], course[name])]
            found[name] = (edited or candidates)[0]
    for name, candidates in places.items():
        if name not in found:
            answer = found.get(name.removeprefix(CHECK_PREFIX), -1)
            found[name] = next((place for place in candidates if place > answer), candidates[-1])
    return found


def _cell(cell: NotebookNode, original: CourseCell | None) -> NotebookNode:
    """Return a cell with only its text, and the course's metadata if it is one of the course's cells."""
    if original:
        return _original(original, original.source if original.nbgrader["locked"] else cell.source, id=cell["id"])
    if cell.cell_type == "code":
        return notebooks.new_code_cell(cell.source, id=cell["id"])
    text = cell.source
    if cell.cell_type == "raw":
        text = "".join(f"    {line}\n" for line in text.splitlines())  # show the text literally, not as HTML
    pictures = {"attachments": cell["attachments"]} if "attachments" in cell else {}
    return notebooks.new_markdown_cell(text, id=cell["id"], **pictures)


def _original(original: CourseCell, text: str, **parts: Any) -> NotebookNode:
    build = notebooks.new_code_cell if original.cell_type == "code" else notebooks.new_markdown_cell
    return build(text, metadata={"nbgrader": dict(original.nbgrader)}, **parts)


def _put_back(cells: list[NotebookNode], name: str, original: CourseCell) -> None:
    """Insert a deleted cell: a check after its answer or, if the answer is missing, too, at the end."""
    ids = [notebooks.grade_id(cell) for cell in cells]
    answer = name.removeprefix(CHECK_PREFIX)
    place = ids.index(answer) + 1 if answer in ids else len(cells)
    cells.insert(place, _original(original, original.source))
