"""Files that learners hand in inside the notebook, as Base64 in an output of the cell that calls `hand_in`.

So the file stays with the notebook in nbgrader, an LMS or a zip. Grading puts it into the working folder for the answer
that reads it. It is never run.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

FILE_MIME = "application/vnd.lmcourse.file"
SEAL_MIME = "application/vnd.lmcourse.seal"

SEAL: ContextVar[str | None] = ContextVar("SEAL", default=None)
"""While grading judges a submission: the last digest that its saved outputs show, or "". Outside of grading, None."""

MAX_FILE_BYTES = 512 * 1024
"""Largest size of a file in bytes; larger files are neither handed in nor read."""


def hand_in(file: Path) -> None:
    """Put a file into the notebook as an output of the current cell; raise ValueError if it is too large."""
    from IPython.display import display  # imported here because grading only reads files

    data = file.read_bytes()
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{file.name} has {len(data):,} bytes, but at most {MAX_FILE_BYTES:,} can be handed in.")
    said = f"{file.name} ({len(data):,} bytes) is in the notebook: save it, with its outputs."
    display({FILE_MIME: base64.b64encode(data).decode(), "text/plain": said}, raw=True)  # type: ignore[no-untyped-call]


def show_seal(digest: str, said: str) -> None:
    """Put the digest of what was sealed into the notebook as an output of the current cell, with a line of text."""
    from IPython.display import display

    display({SEAL_MIME: digest, "text/plain": said}, raw=True)  # type: ignore[no-untyped-call]


def seal_in(outputs: Any) -> str:
    """Return the last digest of 12 hex digits in the outputs of a submitted cell, or ""."""
    return next((text for text in _texts(outputs, SEAL_MIME) if re.fullmatch("[0-9a-f]{12}", text)), "")


def encoded_in(outputs: Any) -> str:
    """Return the Base64 in the outputs of a submitted cell, or ""."""
    return next((text for text in _texts(outputs, FILE_MIME) if decoded(text)), "")


def _texts(outputs: Any, mime: str) -> Iterator[str]:
    """Yield the texts of a MIME type in outputs, the last first; never raise an exception for any outputs."""
    for output in reversed(outputs) if isinstance(outputs, list) else ():
        data = output.get("data") if isinstance(output, dict) else None
        found = data.get(mime) if isinstance(data, dict) else None
        lines = [found] if isinstance(found, str) else found  # nbformat stores a text as a list of lines
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            yield "".join(lines)


def decoded(text: str) -> bytes:
    """Return the bytes of a file; empty if there are too many, or if the text is not Base64."""
    try:
        data = base64.b64decode(text, validate=True) if len(text) <= 2 * MAX_FILE_BYTES else b""
    except ValueError:
        return b""
    return data if len(data) <= MAX_FILE_BYTES else b""


def not_handed_in(name: str) -> str:
    """Return the reason why grading has no file with this name for an answer that reads it."""
    return (
        f"The notebook holds no {name} (at most {MAX_FILE_BYTES // 1024} KiB): run the cell that hands it in, save the "
        "notebook with its outputs, and hand it in again."
    )
