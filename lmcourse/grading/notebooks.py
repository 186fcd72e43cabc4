"""Create notebooks and cells, and read a submitted notebook or report its problems.

Only the parts of a submitted notebook that grading uses are kept: the texts of its cells, their ids, attached pictures,
nbgrader's metadata, and a file handed in as an output. Each step has a limit, so that no file takes much time or
memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from nbformat import NotebookNode, from_dict, v4

from lmcourse.base.text import escaped_name, replace_surrogates
from lmcourse.grading.files import UnreadableError, read_file
from lmcourse.report.handed_in import encoded_in, seal_in

METADATA_KEY = "lmcourse"  # key of grading's own notes in the metadata of a notebook
HANDED_IN = "handed_in"  # key in a cell's metadata and in the notes: the file from the cell's outputs, in Base64
SEALED = "sealed"  # likewise: the digest that the cell's outputs show
BESIDE = "beside"  # likewise: the files handed in beside the notebook (see `encoded_beside`)
NO_SCORE = "NoScore"  # name of the error in a graded cell without a valid score
NOT_RUN = "NotRun"  # name of the error in a cell that was not run

# largest number of values in a file's JSON, counted by its punctuation; each takes up to 70 bytes of memory
MAX_VALUES = 2_000_000
MAX_CELLS = 2_000  # largest number of cells; the notebooks of the course have about 100
MAX_SOURCE_CHARS = 300_000  # largest number of characters in all cells; the notebooks of the course have up to 50,000
FORMAT_VERSION = 4  # of nbformat
IMAGE_MIME_TYPES = ("image/png", "image/jpeg")  # allowed formats of pictures, which cannot contain scripts

_SHORTEN_IT = "Remove what the answers do not need, and hand it in again."
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def new_notebook(**parts: Any) -> NotebookNode:
    """Return a new notebook."""
    return cast(NotebookNode, v4.new_notebook(**parts))


def new_code_cell(source: str = "", **parts: Any) -> NotebookNode:
    """Return a code cell with a new id."""
    return _new_cell("code", source, **{"execution_count": None, "outputs": [], **parts})


def new_markdown_cell(source: str = "", **parts: Any) -> NotebookNode:
    """Return a text cell with a new id."""
    return _new_cell("markdown", source, **parts)


def new_raw_cell(source: str = "", **parts: Any) -> NotebookNode:
    """Return a raw cell with a new id; it is neither run nor rendered."""
    return _new_cell("raw", source, **parts)


def _new_cell(kind: str, source: str, **parts: Any) -> NotebookNode:
    # nbformat's own functions validate each cell, which is slow; we validate whole notebooks.
    cell = {"id": uuid4().hex[:8], "cell_type": kind, "metadata": {}, "source": source}
    return cast(NotebookNode, from_dict({**cell, **parts}))


def new_output(kind: str, **parts: Any) -> NotebookNode:
    """Return a new output of type "stream", "error", "display_data" or "execute_result"."""
    return cast(NotebookNode, v4.new_output(kind, **parts))


def error_output(name: str, sentence: str) -> NotebookNode:
    """Return an error output. nbgrader gives its cell 0 points, and the feedback shows the sentence."""
    return new_output("error", ename=name, evalue=sentence, traceback=[f"{name}: {sentence}"])


def problem_of(nb: NotebookNode) -> str:
    """Return one sentence about a problem of the whole submission, or ""."""
    return str(nb.metadata.get(METADATA_KEY, {}).get("problem", ""))


def add_notes(nb: NotebookNode, **notes: Any) -> None:
    """Add entries to grading's own notes in the metadata of a notebook."""
    nb.metadata[METADATA_KEY] = {**nb.metadata.get(METADATA_KEY, {}), **notes}


def fingerprint(nb: NotebookNode) -> str:
    """Return a hash of the cells' texts, which shows whether a copy contains a learner's work."""
    texts = [[cell.cell_type, cell.source] for cell in nb.cells]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def read_submission(path: Path) -> NotebookNode:
    """Read the notebook in a file, without its outputs, or raise `UnreadableError`. Cells keep their ids."""
    data = read_file(path)
    name = escaped_name(path.name)
    try:
        notebook = _notebook(_parsed(data))
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from error
    except Exception as error:  # JSON with an unexpected structure causes many kinds of errors
        problem = f"{name} cannot be read as a notebook ({_why_unreadable(error, data)})"
        raise UnreadableError(f"{problem}. Open it in JupyterLab, save it and hand it in again.") from error
    if problem := size_problem(notebook):
        raise UnreadableError(f"{name} {problem}")
    return notebook


def cell_ids(path: Path) -> set[str]:
    """Return the ids of a notebook's cells, nbgrader's too; none if the file cannot be read."""
    try:
        cells = read_submission(path).cells
    except UnreadableError:
        return set()
    # In the course's notebooks a graded cell's nbgrader id is also its cell id, which editors keep.
    return {str(cell["id"]) for cell in cells} | {grade_id(cell) for cell in cells}


def grade_id(cell: NotebookNode) -> str:
    """Return the nbgrader id of a cell, or ""."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def size_problem(notebook: NotebookNode) -> str:
    """Return the end of a sentence about the size limit that a notebook exceeds, or ""."""
    if len(notebook.cells) > MAX_CELLS:
        return f"has more than {MAX_CELLS:,} cells. {_SHORTEN_IT}"
    if sum(len(cell.source) for cell in notebook.cells) > MAX_SOURCE_CHARS:
        return f"has more than {MAX_SOURCE_CHARS:,} characters in its cells. {_SHORTEN_IT}"
    return ""


def is_picture(mime: str, value: Any) -> bool:
    """Return True if this is a picture in Base64, in a format that cannot contain a script."""
    return mime in IMAGE_MIME_TYPES and isinstance(value, str) and _BASE64.fullmatch(value) is not None


def attached_pictures(attachments: Any) -> dict[str, dict[str, str]]:
    """Return the pictures among the attachments of a cell."""
    kept: dict[str, dict[str, str]] = {}
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        for mime, value in bundle.items() if isinstance(bundle, dict) else ():
            if is_picture(mime, value):
                kept[replace_surrogates(str(name))] = {mime: value}
    return kept


def _parsed(data: bytes) -> Any:
    text = data.decode(json.detect_encoding(data))
    if sum(map(text.count, ",:[{")) > MAX_VALUES:
        raise UnreadableError("contains too much data. Clear its outputs and hand it in again.")
    return json.loads(text)


def _notebook(data: Any) -> NotebookNode:
    version = data["nbformat"]
    if version != FORMAT_VERSION:
        number = escaped_name(str(version)) if isinstance(version, int) else "unknown"
        advice = "which this course does not read. Save it as format 4 and hand it in again."
        raise UnreadableError(f"has notebook format {number}, {advice}")
    cells = [_cell(cell) for cell in data["cells"]]
    ids: set[str] = set()
    for cell in cells:
        if cell["id"] in ids:  # the cell was copied together with its id
            cell["id"] = new_code_cell()["id"]
        ids.add(cell["id"])
    return new_notebook(cells=cells, metadata=_metadata(data.get("metadata")))


def _cell(cell: Any) -> NotebookNode:
    kind = cell["cell_type"]
    source = cell.get("source") or ""  # some programs write an empty cell without a text
    if not _is_text(source):
        raise ValueError("a cell has no text")
    text = "\n".join(re.split(r"\r\n?|\n", replace_surrogates("".join(source))))
    metadata, cell_id = cell.get("metadata"), cell.get("id")
    nbgrader = _plain_values(metadata.get("nbgrader")) if isinstance(metadata, dict) else {}
    parts: dict[str, Any] = {"metadata": {"nbgrader": nbgrader} if nbgrader else {}}
    if isinstance(cell_id, str) and _ID.fullmatch(cell_id):
        parts["id"] = cell_id
    if kind == "code":
        if file := encoded_in(cell.get("outputs")):
            parts["metadata"][HANDED_IN] = file
        if digest := seal_in(cell.get("outputs")):
            parts["metadata"][SEALED] = digest
        return new_code_cell(text, **parts)
    if pictures := attached_pictures(cell.get("attachments")):
        parts["attachments"] = pictures
    return (new_markdown_cell if kind == "markdown" else new_raw_cell)(text, **parts)


def _metadata(metadata: Any) -> dict[str, Any]:
    # nbgrader reads its own copy again; `RestoreCells` has removed notes that a learner has forged.
    entries = metadata if isinstance(metadata, dict) else {}
    kept = {key: _plain_values(entries.get(key)) for key in (METADATA_KEY, "kernelspec")}
    if not all(isinstance(kept["kernelspec"].get(key), str) for key in ("name", "display_name")):
        del kept["kernelspec"]
    return {key: value for key, value in kept.items() if value}


def _plain_values(data: Any) -> dict[str, Any]:
    """Return the entries of a dictionary that are numbers, texts or lists of texts."""
    kept: dict[str, Any] = {}
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, str):
            kept[replace_surrogates(key)] = replace_surrogates(value)
        elif isinstance(value, (int, float)):
            kept[replace_surrogates(key)] = value
        elif _is_text(value):
            kept[replace_surrogates(key)] = [replace_surrogates(line) for line in value]
    return kept


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(part, str) for part in value))


def _why_unreadable(error: Exception, data: bytes) -> str:
    if not data.strip():
        return "it is empty"
    if b"\n<<<<<<< " in data:
        return "it contains the markers of a git merge conflict"
    if isinstance(error, json.JSONDecodeError):
        cut_off = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        return f"it is cut off in line {error.lineno}" if cut_off else f"line {error.lineno} is not JSON"
    if isinstance(error, UnicodeDecodeError):
        return "its text is not UTF-8"
    return "it lacks parts that every notebook has"
