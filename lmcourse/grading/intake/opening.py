"""Opening what was handed in: once, following no link, waiting for nobody, and reading no more than is allowed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from lmcourse.units import MIB

LARGEST = 50 * MIB
"""Bytes of the largest file that is read; an honest notebook with pictures stays under 5 MB."""

NAME = 80
"""Characters of a name that are shown."""

_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")
_PAGES = (b"<!doctype html", b"<html")


class UnreadableError(Exception):
    """The file is not a notebook; the message says why, and what to do."""


def shown(name: str) -> str:
    r"""A name as one short line: what cannot be printed, or turns the writing about, is spelled out as \u202e."""
    line = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name)
    return line if len(line) <= NAME else f"{line[: NAME - 1]}…"


def read_file(path: Path) -> bytes:
    """What is in this file.

    Raises:
        UnreadableError: it is a link, a folder, a pipe, a device, too large, or no file that may be read; or it is an
            archive, a web page or a PDF.
    """
    name = shown(path.name)
    try:
        with open(path, "rb", opener=_opener) as file:  # `Path.open` takes no opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError(f"{name} is no ordinary file: hand in the notebook itself.")
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableError(f"{name} {_obstacle(error)}.") from error
    if len(data) > LARGEST:
        raise UnreadableError(
            f"{name} is larger than {LARGEST // MIB} MB: clear its outputs (Kernel, Restart and Clear Outputs) and "
            "hand it in again."
        )
    if mistake := _mistaken_for_a_notebook(data):
        raise UnreadableError(f"{name} is {mistake}.")
    return data


def refuse_links(*folders: Path) -> None:
    """Let no folder of a submission stand for somebody else's.

    Raises:
        UnreadableError: one of them is a link.
    """
    for folder in folders:
        if folder.is_symlink():
            raise UnreadableError(
                f"The folder {shown(folder.name)} is a link: hand in a folder with the notebook itself."
            )


def _opener(path: str, flags: int) -> int:
    """Without O_NONBLOCK a named pipe would keep the grader waiting for good. Windows has neither flag."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _obstacle(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a link to another file: hand in the notebook itself"
    if error.errno == errno.EISDIR:
        return "is a folder: hand in the notebook itself"
    if error.errno == errno.EACCES:
        return "may not be read by the grader: its permissions have to allow it"
    if error.errno == errno.ENXIO:
        return "is no ordinary file: hand in the notebook itself"
    return f"cannot be opened ({error.strerror}): hand it in again"


def _mistaken_for_a_notebook(data: bytes) -> str:
    """What learners hand in when they mean well, and what they should do; or nothing."""
    if data.startswith(_ARCHIVES) or data[257:262] == b"ustar":
        return "an archive, such as a zip: unpack it and hand in the notebook itself"
    if data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGES):
        return "a web page: hand in the notebook itself (in JupyterLab: File, Download)"
    if data.startswith(b"%PDF"):
        return "a PDF: hand in the notebook itself (in JupyterLab: File, Download)"
    return ""
