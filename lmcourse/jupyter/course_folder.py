"""Copy the notebooks in a wheel into a learner's folder, without overwriting a learner's work.

A clone already has its notebooks. If you install the package with pip, `lmcourse lab` in an empty folder copies them
there, with `nbgrader_config.py`. After an update, the same command replaces notebooks without your work.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.course.root import CARRIED, ROOT_MARKER, find_root, is_root


def course_folder(named: Path | None = None, carried: Path = CARRIED) -> Path:
    """Return the course's folder; if the package is installed from a wheel, first copy the notebooks there.

    Args:
        named: the requested folder; by default the current folder, or a folder that contains it.
        carried: the folder with the wheel's notebooks, which does not exist in a clone.
    """
    if not carried.is_dir():
        return find_root(named)
    root = named if named is not None and not is_root(named) else _found(named)
    if (root / "solutions").is_dir():
        return root  # a clone, whose notebooks belong to git
    if not is_root(root) and (root / "notebooks").exists():
        raise CourseError(f"{root / 'notebooks'} contains other files. Run `lmcourse lab` in an empty folder.")
    try:
        kept = [*copy_notebooks(carried, root)]
    except OSError as error:
        raise CourseError(f"{error.filename} cannot be written: {error.strerror}.") from error
    for path in kept:
        print(f"{path.relative_to(root)} holds your work and stays; the installed course has a newer one.")
    return root.resolve()


def copy_notebooks(carried: Path, root: Path) -> Iterator[Path]:
    """Copy missing or outdated notebooks; yield outdated notebooks with a learner's work, which are kept."""
    # This file comes first, so that an interrupted copy is recognised as the course's folder and can continue.
    files = [carried / ROOT_MARKER, *sorted((carried / "notebooks").glob("*/*.ipynb"))]
    for file in files:
        target = root / file.relative_to(carried)
        if not target.exists():
            _copy(file, target)
        elif file.suffix == ".ipynb" and _release(file) != _release(target):
            # imported here because it takes half a second and is rarely needed
            from lmcourse.authoring.release import has_student_work

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
    """Return the hash of the released cells; None if the file is not a notebook of the course."""
    try:
        return json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["lmcourse"]["cells"]
    except (ValueError, KeyError, TypeError):
        return None
