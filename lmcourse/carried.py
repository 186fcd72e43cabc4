"""Copy the notebooks that a wheel carries into a learner's folder, never over a learner's work.

A clone has its notebooks already. If you install the package with pip, you get them, and `nbgrader_config.py`, by
`lmcourse lab` in an empty folder; the same command after an update renews those in which nothing was written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.root import CARRIED, ROOT_MARKER, find_root, is_root


def course_folder(named: Path | None = None, carried: Path = CARRIED) -> Path:
    """Return the course's folder; if a wheel carries the notebooks, copy them there first.

    Args:
        named: the folder that was asked for; by default the current one, or one around it.
        carried: what the wheel carries; a clone has no such folder.

    Raises:
        CourseError: there is no course and none can be made here.
    """
    if not carried.is_dir():
        return find_root(named)
    root = named if named is not None and not is_root(named) else _found(named)
    if (root / "solutions").is_dir():
        return root  # a clone, whose notebooks are git's
    if not is_root(root) and (root / "notebooks").exists():
        raise CourseError(f"{root / 'notebooks'} holds something else. Run `lmcourse lab` in an empty folder.")
    try:
        kept = [*copy_notebooks(carried, root)]
    except OSError as error:
        raise CourseError(f"{error.filename} cannot be written: {error.strerror}.") from error
    for path in kept:
        print(f"{path.relative_to(root)} holds your work and stays; the installed course has a newer one.")
    return root.resolve()


def copy_notebooks(carried: Path, root: Path) -> Iterator[Path]:
    """Copy missing or outdated notebooks, each file whole; yield the outdated ones that hold work, which are kept."""
    # First, so that a copy that was interrupted is known as the course's folder, and goes on.
    files = [carried / ROOT_MARKER, *sorted((carried / "notebooks").glob("*/*.ipynb"))]
    for file in files:
        target = root / file.relative_to(carried)
        if not target.exists():
            _copy(file, target)
        elif file.suffix == ".ipynb" and _release(file) != _release(target):
            from lmcourse.authoring.release import has_student_work  # half a second, and seldom needed

            if has_student_work(target):
                yield target
            else:
                _copy(file, target)


def _found(named: Path | None) -> Path:
    try:
        return find_root(named)
    except CourseError:
        return Path.cwd()


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    shutil.copyfile(file, new)
    new.replace(target)


def _release(notebook: Path) -> Any:
    """Return the digest of the cells as they were released; None if this is not a notebook of the course."""
    try:
        return json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["lmcourse"]["cells"]
    except (ValueError, KeyError, TypeError):
        return None
