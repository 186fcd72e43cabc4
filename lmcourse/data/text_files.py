"""Read local text: a file, or all text files of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lmcourse.errors import CourseError

_SNIFF_BYTES = 8192
"""How many bytes of a file are looked at to see whether it is text."""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with its line endings as they are.

    Raises:
        CourseError: the file cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise CourseError(
            f"{path} is not UTF-8: byte 0x{wrong:02x} at offset {error.start:,}. Save it as UTF-8, or leave it out."
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def find_texts(path: Path) -> tuple[list[Path], list[Path]]:
    """The text files of a folder and the binary ones, each in the order of their names; or the one file.

    Folders in the folder count; hidden files and folders do not, nor do empty files or links to folders. A file is
    binary if there is a zero byte near its beginning, as git decides too.

    Raises:
        CourseError: no text is there, or something cannot be read.
    """
    files = [path] if path.is_file() else list(_walk(path))
    texts: list[Path] = []
    binary: list[Path] = []
    for file in files:
        beginning = _beginning(file)
        if beginning:
            (binary if b"\0" in beginning else texts).append(file)
    if not texts:
        raise CourseError(f"{path} has no text: {len(binary)} of its {len(files)} files are binary, the rest empty.")
    return texts, binary


def _walk(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise _unreadable(Path(error.filename), error)

    found = []
    for parent, folders, files in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in files if not name.startswith(".")]
    yield from sorted((file for file in found if file.is_file()), key=lambda file: file.relative_to(folder).parts)


def _beginning(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_SNIFF_BYTES)
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(path: Path, error: OSError) -> CourseError:
    return CourseError(f"{path} cannot be read: {error.strerror or error}.")
