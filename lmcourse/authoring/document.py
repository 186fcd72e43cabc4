"""Make a notebook document from a source: cells with stable ids and nbgrader's metadata, not yet executed."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lmcourse.authoring.needed_cells import Code, unneeded_cells
from lmcourse.authoring.source import Source, SourceCell
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.report import check_id

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}

SKIPPED = {"grading": "skip"}
"""Metadata under the key "lmcourse" of cells that grading skips."""

HIDE_INPUT_TAG = "hide-input"

RUN_FIRST = "# Run this cell first: it imports what this notebook uses.\n"
"""The first line of a notebook's first cell, which JupyterLab shows while the cell is folded."""

WITHOUT_THE_PACKAGE = """\
try:
    import lmcourse
except ModuleNotFoundError:
    raise ModuleNotFoundError("Run in a new cell, then this one again:  %pip install 'lmcourse[course]'") from None

"""
"""The next lines, for Colab and similar services, which open a notebook without its package."""

_STARTS = re.compile(r"^start\(", re.MULTILINE)


def document(source: Source, chapter: Chapter) -> NotebookNode:
    """Return the notebook that a source describes, without outputs. The same source always gives the same notebook."""
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    texts: Counter[str] = Counter()
    cells = [_cell(cell, points, texts) for cell in source.cells]
    for place in _skipped(source):
        cells[place].metadata["lmcourse"] = dict(SKIPPED)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "lmcourse": {"chapter": chapter.id}}
    notebook: NotebookNode = new_notebook(cells=cells, metadata=metadata)
    return notebook


def _skipped(source: Source) -> list[int]:
    places = [place for place, cell in enumerate(source.cells) if cell.kind == "code"]
    cells = [source.cells[place] for place in places]
    codes = [Code(cell.text, bool(cell.exercise or cell.check or cell.task)) for cell in cells]
    answers = [cell.exercise for cell in cells if cell.exercise]
    return [places[number] for number in sorted(unneeded_cells(codes, answers))]


def _cell(cell: SourceCell, points: dict[str, int], texts: Counter[str]) -> NotebookNode:
    new: Any = new_markdown_cell if cell.kind == "markdown" else new_code_cell
    metadata: dict[str, Any] = {key: cell.options[key] for key in ("tags",) if key in cell.options}
    starts = cell.kind == "code" and _STARTS.search(cell.text)
    if starts or HIDE_INPUT_TAG in cell.options.get("tags", []):
        metadata["jupyter"] = {"source_hidden": True}
    if marks := _nbgrader(cell, points):
        metadata["nbgrader"] = marks
    text = f"{RUN_FIRST}{WITHOUT_THE_PACKAGE}{cell.text}" if starts else cell.text
    node: NotebookNode = new(text, id=marks["grade_id"] if marks else _id(cell, texts), metadata=metadata)
    return node


def _nbgrader(cell: SourceCell, points: dict[str, int]) -> dict[str, Any]:
    """Return nbgrader's metadata of an exercise, a check or a task; {} for other cells."""
    marks = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    if cell.exercise:
        return marks | {"grade_id": cell.exercise, "solution": True}
    if cell.check:
        return marks | {"grade_id": check_id(cell.check), "grade": True, "locked": True, "points": points[cell.check]}
    if cell.task:
        return marks | {"grade_id": cell.task, "task": True, "locked": True, "points": int(cell.options["points"])}
    return {}


def _id(cell: SourceCell, texts: Counter[str]) -> str:
    """Return an id made from the cell's text, so that inserting a cell changes no other id."""
    name = hashlib.sha256(f"{cell.kind}\n{cell.text}".encode()).hexdigest()[:12]
    texts[name] += 1
    return name if texts[name] == 1 else f"{name}-{texts[name]}"


def dumps(notebook: NotebookNode) -> str:
    """Return a notebook as the text of its file."""
    return f"{nbformat.writes(notebook, version=4)}\n"


def load_notebook(path: Path) -> NotebookNode | None:
    """Return the notebook in a file; None if the file is missing or is not a notebook."""
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return None
    return notebook
