"""Read and sanitize a submitted notebook, or say why it is not one.

A file becomes text, the text JSON, and of the JSON only what grading uses becomes a notebook: the cells' texts, their
attached pictures and nbgrader's marks. Each step has its limit, so that no file takes much time or memory.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.cells import METADATA_KEY, new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from lmcourse.grading.intake.files import UnreadableError, escaped_name, read_file
from lmcourse.text import replace_surrogates

MAX_VALUES = 2_000_000
"""Values in the JSON of a file, counted by its punctuation; each takes up to 70 bytes of memory."""

MAX_CELLS = 2_000
"""Cells of a notebook; those of the course have about 100."""

MAX_SOURCE_CHARS = 300_000
"""Characters of all cells together; the notebooks of the course have up to 50,000. A page takes 20 s to draw then."""

FORMAT_VERSIONS = (2, 3, 4)
"""nbformat's versions. JupyterLab writes 4; before that, cells lay in worksheets."""

SHORTEN_IT = "take out what the answers do not need, and hand it in again."

IMAGE_MIME_TYPES = ("image/png", "image/jpeg")
"""The only attachments of a text cell, and the only files in an output, that are kept."""

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def read_submission(path: Path) -> NotebookNode:
    """The notebook in this file, without outputs.

    Raises:
        UnreadableError: there is none.
    """
    data = read_file(path)
    name = escaped_name(path.name)
    try:
        notebook = _notebook(_parsed(data))
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from error
    except Exception as error:  # JSON of a strange shape leads to any of several
        raise UnreadableError(
            f"{name} cannot be read as a notebook ({_why_unreadable(error, data)}): open it in JupyterLab, save it and "
            "hand it in again."
        ) from error
    if problem := size_problem(notebook):
        raise UnreadableError(f"{name} {problem}")
    return notebook


def size_problem(notebook: NotebookNode) -> str:
    """The size limit that a notebook exceeds, as the end of a sentence, or an empty text."""
    if len(notebook.cells) > MAX_CELLS:
        return f"has more than {MAX_CELLS:,} cells: {SHORTEN_IT}"
    if sum(len(cell.source) for cell in notebook.cells) > MAX_SOURCE_CHARS:
        return f"has more than {MAX_SOURCE_CHARS:,} characters in its cells: {SHORTEN_IT}"
    return ""


def is_picture(mime: str, value: Any) -> bool:
    """Whether this is the Base64 of a picture in a format that cannot hold a script."""
    return mime in IMAGE_MIME_TYPES and isinstance(value, str) and _BASE64.fullmatch(value) is not None


def attached_pictures(attachments: Any) -> dict[str, dict[str, str]]:
    """Pictures attached to a text cell, and nothing else that calls itself an attachment."""
    kept: dict[str, dict[str, str]] = {}
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        for mime, value in bundle.items() if isinstance(bundle, dict) else ():
            if is_picture(mime, value):
                kept[replace_surrogates(str(name))] = {mime: value}
    return kept


def _parsed(data: bytes) -> Any:
    text = data.decode(json.detect_encoding(data))
    if sum(text.count(mark) for mark in ",:[{") > MAX_VALUES:
        raise UnreadableError("holds too much data: clear its outputs and hand it in again.")
    return json.loads(text)


def _notebook(data: Any) -> NotebookNode:
    version = data["nbformat"]
    if version not in FORMAT_VERSIONS:
        number = escaped_name(str(version)) if isinstance(version, int) else "unknown"
        raise UnreadableError(
            f"is in a format of notebooks ({number}) that this course does not read: save it as version 4 and hand it "
            "in again."
        )
    cells = (
        data["cells"]
        if version == max(FORMAT_VERSIONS)
        else [cell for sheet in data["worksheets"] for cell in sheet["cells"]]
    )
    if len(cells) > MAX_CELLS:  # said here already, where it costs least
        raise UnreadableError(f"has more than {MAX_CELLS:,} cells: {SHORTEN_IT}")
    return new_notebook(
        cells=_with_unique_ids([_cell(cell) for cell in cells]), metadata=_metadata(data.get("metadata"))
    )


def _cell(cell: Any) -> NotebookNode:
    kind = cell["cell_type"]
    source = cell["source"] if "source" in cell else cell["input"]  # before format 4
    if not isinstance(source, str) and not _is_list_of_texts(source):
        raise ValueError("a cell without text")
    text = replace_surrogates("".join(source))
    metadata = cell.get("metadata")
    nbgrader = _plain_values(metadata.get("nbgrader")) if isinstance(metadata, dict) else {}
    parts: dict[str, Any] = {"metadata": {"nbgrader": nbgrader} if nbgrader else {}}
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
    """What grading itself left there, or what somebody forged; `RestoreCells` drops it from what was handed in."""
    if not isinstance(metadata, dict):
        return {}
    kept = {key: _plain_values(metadata.get(key)) for key in (METADATA_KEY, "kernelspec")}
    if not all(isinstance(kept["kernelspec"].get(key), str) for key in ("name", "display_name")):
        del kept["kernelspec"]
    return {key: value for key, value in kept.items() if value}


def _plain_values(data: Any) -> dict[str, Any]:
    """Of a dictionary what is a number, a text or a list of texts."""
    if not isinstance(data, dict):
        return {}
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, str):
            kept[replace_surrogates(key)] = replace_surrogates(value)
        elif isinstance(value, (int, float)):
            kept[replace_surrogates(key)] = value
        elif _is_list_of_texts(value):
            kept[replace_surrogates(key)] = [replace_surrogates(item) for item in value]
    return kept


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _why_unreadable(error: Exception, data: bytes) -> str:
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
