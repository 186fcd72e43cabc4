"""From source to notebook document: cells with stable ids and nbgrader's metadata, not yet executed."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lmcourse.authoring.source import Source, SourceCell
from lmcourse.course import Chapter
from lmcourse.exercises.registry import find_exercise

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}

FOLDED = "hide-input"
"""The tag of a cell whose code is folded away when the notebook opens."""


def document(source: Source, chapter: Chapter) -> NotebookNode:
    """The notebook that a source describes, without outputs. The same source always gives the same notebook."""
    names = _Names()
    cells = [_cell(cell, names) for cell in source.cells]
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "lmcourse": {"chapter": chapter.id}}
    notebook: NotebookNode = new_notebook(cells=cells, metadata=metadata)
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """A notebook as the text of its file."""
    return f"{nbformat.writes(notebook, version=4)}\n"


class _Names:
    """Cell ids that depend on what a cell says, so that inserting a cell changes no other's."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()

    def id(self, cell: SourceCell) -> str:
        if cell.exercise:
            return cell.exercise
        if cell.check:
            return check_id(cell.check)
        name = hashlib.sha256(f"{cell.kind}\n{cell.text}".encode()).hexdigest()[:12]
        self.used[name] += 1
        return name if self.used[name] == 1 else f"{name}-{self.used[name]}"


def check_id(exercise: str) -> str:
    """The id of the cell that checks an exercise, for Jupyter and for nbgrader."""
    return f"check_{exercise}"


def _cell(cell: SourceCell, names: _Names) -> NotebookNode:
    new: Any = new_markdown_cell if cell.kind == "markdown" else new_code_cell
    tags = cell.options.get("tags", [])
    metadata: dict[str, Any] = {"tags": tags} if tags else {}
    if FOLDED in tags:
        metadata["jupyter"] = {"source_hidden": True}
    if cell.exercise:
        metadata["nbgrader"] = _nbgrader(cell.exercise, solution=True)
    if cell.check:
        points = find_exercise(cell.check).points
        metadata["nbgrader"] = _nbgrader(check_id(cell.check), grade=True, locked=True, points=points)
    node: NotebookNode = new(cell.text, id=names.id(cell), metadata=metadata)
    return node


def _nbgrader(grade_id: str, **said: Any) -> dict[str, Any]:
    fixed = {"schema_version": 3, "grade_id": grade_id, "grade": False, "solution": False, "locked": False}
    return fixed | {"task": False} | said
