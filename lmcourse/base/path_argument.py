"""Read a path that a user typed."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from lmcourse.base.errors import CourseError


def path_argument(text: str) -> Path:
    """Return the path that a user typed.

    CourseError is raised if the text is empty, which for Python is the current folder, but is more likely an unset
    variable, if it has a control character, such as a line break, or if it is a link to itself.
    """
    if not text.strip():
        raise CourseError("a path is empty (is a variable not set?): give a path, or write . for the current folder")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise CourseError(f"the path {text!r} has a control character, such as a line break: rename the file")
    path = Path(text)
    try:
        path.resolve()
    except (OSError, RuntimeError):
        raise CourseError(f"{text} is a link that leads back to itself: name another path") from None
    return path
