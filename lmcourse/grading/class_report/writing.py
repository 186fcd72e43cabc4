"""Write the report into its folder atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType

from lmcourse.errors import CourseError
from lmcourse.grading.class_report.page import page
from lmcourse.grading.class_report.section import sections_of
from lmcourse.grading.class_report.tables import tables
from lmcourse.grading.result import SubmissionResult


def write_report(
    results: Sequence[SubmissionResult],
    folder: Path,
    printed: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> list[Path]:
    """Write the report on a class: `report.html`, and `exercises`, `students`, `misconceptions` and `evidence.csv`.

    Args:
        results: the submissions, of one assignment or several.
        folder: where to; it is made if need be. An older report there is replaced once the new one is complete; other
            files stay.
        printed: the printed solutions, by assignment and exercise, for answers that are like them.

    Returns:
        The files, the page first.

    Raises:
        CourseError: the folder or a file of it cannot be written.
    """
    sections = sections_of(results, printed)
    texts = {"report.html": page(sections, date.today()), **tables(sections)}
    temporary = {folder / name: folder / f".{name}.{os.getpid()}.new" for name in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, new in temporary.items():
            new.write_text(texts[path.name], encoding="utf-8", newline="")
        _move_all(temporary)
    except OSError as error:
        place = error.filename2 or error.filename
        what_to_do = "Close it where it is open, or name another folder."
        raise CourseError(f"The report cannot be written: {place}: {error.strerror}. {what_to_do}") from error
    finally:
        for new in temporary.values():
            if folder.is_dir():
                new.unlink(missing_ok=True)
    return list(temporary)


def _move_all(temporary: dict[Path, Path]) -> None:
    """Move every file into its place, or leave all places as they were."""
    older = {path: path.read_bytes() for path in temporary if path.exists()}
    moved = []
    try:
        for path, new in temporary.items():
            new.replace(path)
            moved.append(path)
    except OSError:
        for path in moved:
            if path in older:
                path.write_bytes(older[path])
            else:
                path.unlink()
        raise
