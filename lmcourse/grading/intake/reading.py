"""Reading submissions that may be anything: nbgrader gets a notebook every time, an empty one if need be.

A file becomes text, the text JSON, and of the JSON only what grading uses becomes a notebook: the cells' texts, their
attached pictures and nbgrader's marks. Each step has its limit, so that no file takes much time or memory.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from traitlets import Unicode

from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from lmcourse.grading.intake.opening import UnreadableError, read_file, refuse_links, shown
from lmcourse.grading.intake.pictures import attached_pictures, printable
from lmcourse.grading.notes import KEY

MOST_VALUES = 2_000_000
"""Values in the JSON of a file, counted by its punctuation; each takes up to 70 bytes of memory."""

MOST_CELLS = 2_000
"""Cells of a notebook; those of the course have about 100."""

LONGEST = 300_000
"""Characters of all cells together; the notebooks of the course have up to 50,000. A page takes 20 s to draw then."""

FORMATS = (2, 3, 4)
"""nbformat's versions. JupyterLab writes 4; before that, cells lay in worksheets."""

SHORTER = "take out what the answers do not need, and hand it in again."

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in this file, without outputs.

    Raises:
        UnreadableError: there is none.
    """
    data = read_file(path)
    name = shown(path.name)
    try:
        notebook = _notebook(_parsed(data))
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from error
    except Exception as error:  # JSON of a strange shape leads to any of several
        raise UnreadableError(
            f"{name} cannot be read as a notebook ({_why(error, data)}): open it in JupyterLab, save it and hand it in "
            "again."
        ) from error
    if problem := excess(notebook):
        raise UnreadableError(f"{name} {problem}")
    return notebook


def excess(notebook: NotebookNode) -> str:
    """What is too much of a notebook, as the end of a sentence, or nothing."""
    if len(notebook.cells) > MOST_CELLS:
        return f"has more than {MOST_CELLS:,} cells: {SHORTER}"
    if sum(len(cell.source) for cell in notebook.cells) > LONGEST:
        return f"has more than {LONGEST:,} characters in its cells: {SHORTER}"
    return ""


def _parsed(data: bytes) -> Any:
    text = data.decode(json.detect_encoding(data))
    if sum(text.count(mark) for mark in ",:[{") > MOST_VALUES:
        raise UnreadableError("holds too much data: clear its outputs and hand it in again.")
    return json.loads(text)


def _notebook(data: Any) -> NotebookNode:
    version = data["nbformat"]
    if version not in FORMATS:
        number = shown(str(version)) if isinstance(version, int) else "unknown"
        raise UnreadableError(
            f"is in a format of notebooks ({number}) that this course does not read: save it as version 4 and hand it "
            "in again."
        )
    cells = (
        data["cells"] if version == max(FORMATS) else [cell for sheet in data["worksheets"] for cell in sheet["cells"]]
    )
    if len(cells) > MOST_CELLS:  # said here already, where it costs least
        raise UnreadableError(f"has more than {MOST_CELLS:,} cells: {SHORTER}")
    return new_notebook(
        cells=_with_unique_ids([_cell(cell) for cell in cells]), metadata=_metadata(data.get("metadata"))
    )


def _cell(cell: Any) -> NotebookNode:
    kind = cell["cell_type"]
    source = cell["source"] if "source" in cell else cell["input"]  # before format 4
    if not isinstance(source, str) and not _texts(source):
        raise ValueError("a cell without text")
    text = printable("".join(source))
    metadata = cell.get("metadata")
    marks = _plain(metadata.get("nbgrader")) if isinstance(metadata, dict) else {}
    parts: dict[str, Any] = {"metadata": {"nbgrader": marks} if marks else {}}
    identity = cell.get("id")
    if isinstance(identity, str) and _ID.fullmatch(identity):
        parts["id"] = identity
    if kind == "code":
        return new_code_cell(text, **parts)
    build = new_markdown_cell if kind in ("markdown", "heading") else new_raw_cell
    made: NotebookNode = build(text, **parts)
    if pictures := attached_pictures(cell.get("attachments")):
        made["attachments"] = pictures
    return made


def _with_unique_ids(cells: list[NotebookNode]) -> list[NotebookNode]:
    seen: set[str] = set()
    for cell in cells:
        if cell["id"] in seen:
            cell["id"] = new_code_cell()["id"]
        seen.add(cell["id"])
    return cells


def _metadata(metadata: Any) -> dict[str, Any]:
    """What grading itself left there, or what somebody forged; `restore` drops it from what was handed in."""
    if not isinstance(metadata, dict):
        return {}
    kept = {key: _plain(metadata.get(key)) for key in (KEY, "kernelspec")}
    if not all(isinstance(kept["kernelspec"].get(key), str) for key in ("name", "display_name")):
        del kept["kernelspec"]
    return {key: value for key, value in kept.items() if value}


def _plain(data: Any) -> dict[str, Any]:
    """Of a dictionary what is a number, a text or a list of texts."""
    if not isinstance(data, dict):
        return {}
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, str):
            kept[printable(key)] = printable(value)
        elif isinstance(value, (int, float)):
            kept[printable(key)] = value
        elif _texts(value):
            kept[printable(key)] = [printable(item) for item in value]
    return kept


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _why(error: Exception, data: bytes) -> str:
    """What is wrong with the file, in a few words."""
    if not data.strip():
        return "it is empty"
    if b"\n<<<<<<< " in data:
        return "it holds the marks of a git merge"
    if isinstance(error, json.JSONDecodeError):
        broken_off = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        return f"it breaks off in line {error.lineno}" if broken_off else f"line {error.lineno} is no JSON"
    if isinstance(error, UnicodeDecodeError):
        return "its text is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return "it lacks what a notebook has"


class SubmissionExporter(NotebookExporter):
    """nbgrader's way to read and write a notebook, for files that may be broken.

    An unreadable file becomes a notebook without cells; `restore` puts the graded cells back, and each is
    worth 0 for the reason given here. So it is marked like any other, instead of vanishing from the
    gradebook.
    """

    problem = Unicode("", help="Why there is no notebook, if somebody knows better than the file.").tag(config=True)

    def from_filename(  # type: ignore[override]  # nbconvert declares a notebook, and gives its text
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert the notebook in a file; whatever the file is, it does not raise for it."""
        path = Path(filename)
        resources = ResourcesDict() if resources is None else resources
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        try:
            if "student" in resources.get("nbgrader", {}):  # nbgrader's own layout: student/assignment/notebook
                refuse_links(path.parent, path.parent.parent)
            notebook = read_notebook(path)
        except UnreadableError as error:
            notebook = new_notebook()
            resources["problem"] = self.problem or str(error)
        text, resources = cast(Any, self).from_notebook_node(notebook, resources=resources, **options)
        # What a learner's code puts out may hold half a surrogate pair too.
        return printable(text), resources
