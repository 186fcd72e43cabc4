"""Find the course's folder, which holds `notebooks/` and `nbgrader_config.py`."""

from __future__ import annotations

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
