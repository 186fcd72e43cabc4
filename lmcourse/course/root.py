"""Find the course's folder, which contains `notebooks/` and `nbgrader_config.py`."""

from __future__ import annotations

from pathlib import Path

from lmcourse.base.errors import CourseError

ROOT_MARKER = "nbgrader_config.py"
CARRIED = Path(__file__).parents[1] / "course_folder"
"""The folder with a wheel's notebooks, which does not exist in a clone."""


def find_root(named: Path | None = None, here: Path | None = None, checkout: Path | None = None) -> Path:
    """Return the course's folder, or raise CourseError.

    Args:
        named: the requested folder, which must be a course folder.
        here: where to start looking upwards; by default the current folder.
        checkout: where to look last: the checkout that this package is installed from.
    """
    if named is not None:
        if not is_root(named):
            raise CourseError(f"{named} is not the course: it needs notebooks/ or solutions/, and {ROOT_MARKER}.")
        return named.resolve()
    here = (here or Path.cwd()).resolve()
    for folder in (here, *here.parents, checkout or Path(__file__).resolve().parents[2]):
        if is_root(folder):
            return folder
    begin = " or begin with `lmcourse lab` in an empty one" if CARRIED.is_dir() else ", where README.md is"
    raise CourseError(f"There is no course in this folder. Go to the course's folder{begin}, or pass --course FOLDER.")


def is_root(folder: Path) -> bool:
    """Return True if this is a course folder, even if it has no student copies or no answers."""
    return (folder / ROOT_MARKER).is_file() and any((folder / name).is_dir() for name in ("notebooks", "solutions"))
