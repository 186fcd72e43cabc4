"""Read a JSON object from a file that may be damaged or edited by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmcourse.base.errors import CourseError

LFS_POINTER = b"version https://git-lfs"


def read_json(path: Path, needed: Sequence[str] = (), *, error: type[CourseError] = CourseError) -> dict[str, Any]:
    """Return the object of a JSON file.

    Raises CourseError if the file cannot be read, is not valid JSON (NaN and Infinity are invalid), names a key twice
    in an object, is not an object or lacks a key.

    Args:
        path: the file.
        needed: keys that the object must have.
        error: the class of the raised exceptions.
    """
    check_content(path, error=error)
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse, object_pairs_hook=_distinct)
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror}") from None
    except RecursionError:
        raise error(f"{path} is damaged: its JSON is nested too deeply") from None
    except ValueError as problem:
        raise error(f"{path} is damaged: it is not JSON ({problem})") from None
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: it is not a JSON object but a {type(value).__name__}")
    if missing := [key for key in needed if key not in value]:
        raise error(f"{path} is damaged: it has no {', '.join(map(repr, missing))}")
    return value


def check_content(path: Path, *, error: type[CourseError] = CourseError) -> None:
    """Raise CourseError unless a file can be read, and is not a pointer left by `git clone` without Git LFS."""
    try:
        if path.exists() and not path.is_file():
            raise error(f"{path} is a {'folder' if path.is_dir() else 'device or pipe'}, not a file")
        with path.open("rb") as file:
            start = file.read(len(LFS_POINTER))
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror}") from None
    if start == LFS_POINTER:
        raise error(f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` in {path.parent}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found
