"""Moodle's worksheet for grading offline (`mod/assign/feedback/offline`): a row for each participant.

Moodle takes from it what stands under Grade and Feedback comments, for the number at the end of the Identifier.
"""

from __future__ import annotations

import re

from lmcourse.errors import CourseError
from lmcourse.grading.grade_tables.table import Layout, Row, Table

REQUIRED = ("Identifier", "Grade", "Maximum Grade")

_NUMBER_AT_END = re.compile(r"[0-9]+$")


def is_moodle(table: Table) -> bool:
    """Whether this is Moodle's worksheet, in English."""
    return table.column("Identifier") is not None and table.column("Grade") is not None


def moodle_layout(table: Table, column: str | None) -> Layout:
    """The layout of a worksheet.

    Raises:
        CourseError: a column is missing, or one was asked for: a worksheet is about one assignment.
    """
    if column is not None:
        raise CourseError("Moodle's worksheet is about one assignment: leave out --column.")
    places = {name: table.column(name) for name in REQUIRED}
    if missing := [name for name, place in places.items() if place is None]:
        raise CourseError(f"{table.name} lacks the column {missing[0]}: download Moodle's grading worksheet again.")
    identifier, grade, maximum = (place for place in places.values() if place is not None)
    name, changeable = table.column("Full name"), table.column("Grade can be changed")
    rows = []
    for cells in table.rows[1:]:
        number = _NUMBER_AT_END.search(cells[identifier].strip())
        if number:
            locked = changeable is not None and cells[changeable].strip().casefold() == "no"
            why = "Moodle says that their grade cannot be changed" if locked else ""
            rows.append(Row(cells, number[0], cells[name] if name is not None else "", cells[maximum], why))
    return Layout("Moodle", rows, grade, table.column("Feedback comments"))
