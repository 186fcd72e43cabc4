"""Find and read a submission's notebook safely, and exclude files that must not be copied."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lmcourse.text import escape_unprintable
from lmcourse.units import MIB

NOT_COPIED = [
    ".*",  # checkpoints, a learner's progress, editors' files
    "__pycache__",
    "*.pyc",
    "*.py",  # our sources hold the answers; a submitted module has no use
    "*.html",  # a page beside a notebook would be handed on and opened
    "*.htm",
    "*.xhtml",
    "*.svg",
    "*.js",
    "feedback",
]
"""Patterns of files beside a notebook that never travel from one of nbgrader's folders to the next."""

MAX_FILE_BYTES = 50 * MIB
"""The largest file that is read; an honest notebook with pictures stays under 5 MB."""

MAX_ENTRIES = 20
"""Files and folders of one submission that are looked at."""

MAX_NAME_CHARS = 80
"""Characters of a file's name that a message shows."""

ARCHIVE_SUFFIXES = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")

_ARCHIVE_BEGINNINGS = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")
_PAGE_BEGINNINGS = (b"<!doctype html", b"<html")


class UnreadableError(Exception):
    """The file is not a notebook; the message says why, and what to do."""


def escaped_name(name: str) -> str:
    """The name of a file as one short printable line."""
    return escape_unprintable(name, MAX_NAME_CHARS)


def visible_in(folder: Path) -> list[Path]:
    """What is in a folder, by name, but for hidden files.

    Raises:
        UnreadableError: the folder cannot be opened.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        name = escaped_name(folder.name)
        raise UnreadableError(
            f"The folder {name} cannot be opened ({error.strerror}): its permissions have to allow it."
        ) from error


def notebooks_in(folder: Path) -> list[Path]:
    """The files in this folder with the suffix of a notebook, whatever they hold.

    Raises:
        UnreadableError: the folder cannot be opened.
    """
    return [path for path in visible_in(folder) if path.suffix.lower() == ".ipynb"][:MAX_ENTRIES]


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, but for hidden ones and what macOS adds to an archive.

    Raises:
        UnreadableError: the folder cannot be opened.
    """
    return [path for path in visible_in(folder) if _is_folder(path) and not path.name.startswith("__")]


def why_no_notebook(folder: Path, wanted: str) -> str:
    """Why there is no notebook in a folder, in one sentence that says what to do.

    Args:
        folder: it holds none.
        wanted: where the notebook should be.

    Raises:
        UnreadableError: the folder, or one in it, cannot be opened.
    """
    for path in visible_in(folder):
        if path.suffix.lower() in ARCHIVE_SUFFIXES:
            return f"{escaped_name(path.name)} is an archive: unpack it and hand in the notebook itself, as {wanted}."
    for below in folders_in(folder)[:MAX_ENTRIES]:
        if not below.is_symlink() and (found := notebooks_in(below)):
            where = f"{escaped_name(below.name)}/{escaped_name(found[0].name)}"
            return f"The notebook lies too deep: move {where} to {wanted}."
    return f"No notebook was handed in: {wanted} is missing."


def refuse_links(*folders: Path) -> None:
    """Let no folder of a submission stand for somebody else's.

    Raises:
        UnreadableError: one of them is a link.
    """
    for folder in folders:
        if folder.is_symlink():
            name = escaped_name(folder.name)
            raise UnreadableError(f"The folder {name} is a link: hand in a folder with the notebook itself.")


def read_file(path: Path) -> bytes:
    """The bytes of a file. It is opened once; no link is followed, no pipe waited for, no endless file read.

    Raises:
        UnreadableError: it is a link, a folder, a pipe, a device, too large, or no file that may be read; or it is an
            archive, a web page or a PDF.
    """
    name = escaped_name(path.name)
    try:
        with open(path, "rb", opener=_opener) as file:  # `Path.open` takes no opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError(f"{name} is no ordinary file: hand in the notebook itself.")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableError(f"{name} {_why_not_opened(error)}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableError(
            f"{name} is larger than {MAX_FILE_BYTES // MIB} MB: clear its outputs (Kernel, Restart and Clear Outputs) "
            "and hand it in again."
        )
    if mistake := _mistaken_for_a_notebook(data):
        raise UnreadableError(f"{name} is {mistake}.")
    return data


def remove_links(*, assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Remove links and pipes beside notebooks, and in folders below. It is a hook for `Autograde.pre_convert_hook`.

    nbgrader follows a link, so that one to the solutions, or to another student's work, would come back as a file with
    the feedback; a link to a device, or a pipe, it would read for ever. Neither is anybody's work. The notebooks
    themselves stay: whoever reads them gives the reason.

    Args:
        assignment, student: what nbgrader works on.
        notebooks: the files that it is about to convert.
    """
    kept = {Path(notebook) for notebook in notebooks}
    for folder in {notebook.parent for notebook in kept if not notebook.parent.is_symlink()}:
        for place, folders, files in os.walk(folder):
            for path in (Path(place, name) for name in (*folders, *files)):
                mode = path.lstat().st_mode
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and path not in kept:
                    path.unlink()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a link to where the grader may not look
        return False


def _opener(path: str, flags: int) -> int:
    """Without O_NONBLOCK a named pipe would keep the grader waiting for good. Windows has neither flag."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _why_not_opened(error: OSError) -> str:
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
    if data.startswith(_ARCHIVE_BEGINNINGS) or data[257:262] == b"ustar":
        return "an archive, such as a zip: unpack it and hand in the notebook itself"
    if data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGE_BEGINNINGS):
        return "a web page: hand in the notebook itself (in JupyterLab: File, Download)"
    if data.startswith(b"%PDF"):
        return "a PDF: hand in the notebook itself (in JupyterLab: File, Download)"
    return ""
