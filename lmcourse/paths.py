"""Paths as they are typed on a command line."""

from __future__ import annotations

from pathlib import Path

from lmcourse.errors import CourseError


def typed_path(text: str) -> Path:
    """The path that somebody typed.

    Raises:
        CourseError: nothing was typed. To Python that is the current folder, to a person a variable that is not set.
    """
    if not text.strip():
        raise CourseError("a path is empty (is a variable not set?): name it, or write . for the folder you are in")
    return Path(text)
