"""A report in its folder: complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.classroom.page import page
from lmcourse.grading.classroom.record import Record
from lmcourse.grading.classroom.section import sections_of
from lmcourse.grading.classroom.tables import tables


def write_report(records: Sequence[Record], folder: Path) -> list[Path]:
    """Write the report on a class: `report.html`, and `exercises`, `students`, `misconceptions` and `evidence.csv`.

    Args:
        records: the submissions, of one assignment or several.
        folder: where to; it is made if need be. An older report there is replaced once the new one is complete; other
            files stay.

    Returns:
        The files, the page first.

    Raises:
        CourseError: the folder or a file of it cannot be written.
    """
    sections = sections_of(records)
    texts = {"report.html": page(sections, date.today()), **tables(sections)}
    files = {folder / name: text for name, text in texts.items()}
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.new") for path in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            temporary[path].write_text(text, encoding="utf-8", newline="")
        for path, new in temporary.items():
            new.replace(path)
    except OSError as error:
        place = error.filename2 or error.filename
        what_to_do = "Close it where it is open, or name another folder."
        raise CourseError(f"The report cannot be written: {place}: {error.strerror}. {what_to_do}") from error
    finally:
        for new in temporary.values():
            if new.parent.is_dir():
                new.unlink(missing_ok=True)
    return list(files)
