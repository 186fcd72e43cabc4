"""Find the course's folder, which holds `notebooks/` and `nbgrader_config.py`; read paths that a user typed."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from lmcourse.errors import CourseError

ROOT_MARKER = "nbgrader_config.py"
CARRIED = Path(__file__).parent / "course_folder"
"""The notebooks that a wheel carries. A clone has no such folder."""


def find_root(named: Path | None = None, here: Path | None = None, checkout: Path | None = None) -> Path:
    """The course folder.

    Args:
        named: the folder that was asked for; it must be the course's.
        here: where to start looking upwards; the current folder by default.
        checkout: where to look last; the checkout this package is installed from.

    Raises:
        CourseError: it is nowhere.
    """
    if named is not None:
        if not is_root(named):
            raise CourseError(f"{named} is not the course: it needs notebooks/ or solutions/, and {ROOT_MARKER}.")
        return named.resolve()
    here = (here or Path.cwd()).resolve()
    for folder in (here, *here.parents, checkout or Path(__file__).resolve().parents[1]):
        if is_root(folder):
            return folder
    begin = " or begin with `lmcourse lab` in an empty one" if CARRIED.is_dir() else ", where README.md is"
    raise CourseError(f"The course is not here. Go to its folder{begin}, or name it: --course FOLDER")


def is_root(folder: Path) -> bool:
    """Return True if this is the course's folder, even if it has no student copies or no answers."""
    return (folder / ROOT_MARKER).is_file() and any((folder / name).is_dir() for name in ("notebooks", "solutions"))


def typed_path(text: str) -> Path:
    """Return the path that a user typed.

    Raises:
        CourseError: nothing was typed, which to Python is the current folder, to a person a variable that is not set.
            Or the path has a line break or another control character, or is a link to itself.
    """
    if not text.strip():
        raise CourseError("a path is empty (is a variable not set?): name it, or write . for the folder you are in")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise CourseError(f"the path {text!r} has a control character, such as a line break: rename the file")
    path = Path(text)
    try:
        path.resolve()
    except (OSError, RuntimeError):
        raise CourseError(f"{text} is a link that leads back to itself: name another path") from None
    return path
