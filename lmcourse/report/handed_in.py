"""A file that a learner hands in inside the notebook: Base64 in an output of the cell that calls `hand_in`.

So it goes wherever the notebook goes: through nbgrader, an LMS or a zip. In a grade it lies in the working folder, for
the answer that reads it. Nothing of it is run.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

FILE_MIME = "application/vnd.lmcourse.file"
"""The MIME type of such an output."""

MAX_FILE_BYTES = 512 * 1024
"""A larger file is not handed in, and not read."""


def hand_in(file: Path) -> None:
    """Put a file into the notebook, as an output of this cell.

    Raises:
        ValueError: it is larger than `MAX_FILE_BYTES`.
    """
    from IPython.display import display  # grading only reads

    data = file.read_bytes()
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{file.name} has {len(data):,} bytes, and at most {MAX_FILE_BYTES:,} can be handed in.")
    said = f"{file.name} ({len(data):,} bytes) is in the notebook: save it, with its outputs."
    display({FILE_MIME: base64.b64encode(data).decode(), "text/plain": said}, raw=True)  # type: ignore[no-untyped-call]


def encoded_in(outputs: Any) -> str:
    """Return the Base64 in the outputs of a submitted cell, or an empty text; whatever they are, it never raises."""
    for output in reversed(outputs) if isinstance(outputs, list) else ():
        data = output.get("data") if isinstance(output, dict) else None
        found = data.get(FILE_MIME) if isinstance(data, dict) else None
        lines = [found] if isinstance(found, str) else found  # nbformat stores a text as a list of lines
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            text = "".join(lines)
            if decoded(text):
                return text
    return ""


def decoded(text: str) -> bytes:
    """Return the bytes of a file; none if they are too many, or if this is not Base64."""
    try:
        data = base64.b64decode(text, validate=True) if len(text) <= 2 * MAX_FILE_BYTES else b""
    except ValueError:
        return b""
    return data if len(data) <= MAX_FILE_BYTES else b""


def not_handed_in(name: str) -> str:
    """Return why an answer that reads a file of this name has none in a grade."""
    return (
        f"The notebook holds no {name} (at most {MAX_FILE_BYTES // 1024} KiB): run the cell that hands it in, save the "
        "notebook with its outputs, and hand it in again."
    )
