"""Canvas's gradebook as it is exported and imported (`lib/gradebook_exporter.rb`, `lib/gradebook_importer.rb`).

After the header come, perhaps, a row that says "Manual Posting", then one with the points possible, then the students.
An assignment's column is called by its title and number: "Attention (123)".
"""

from __future__ import annotations

import re

from lmcourse.errors import CourseError
from lmcourse.grading.grade_tables.table import Layout, Row, Table

POINTS_POSSIBLE = "Points Possible"

READ_ONLY = "read only"

_ASSIGNMENT = re.compile(r".*\(([0-9]+)\)", re.DOTALL)


def is_canvas(table: Table) -> bool:
    """Whether this is an export of Canvas's gradebook, in English."""
    names = table.header
    return "ID" in names and ("Student" in names[:1] or names[:2] == ["LastName", "FirstName"])


def canvas_layout(table: Table, column: str | None) -> Layout:
    """The layout of a gradebook for one of its assignments.

    Args:
        table: the gradebook.
        column: the assignment's name in it or its number; or a part of the name that no other has.

    Raises:
        CourseError: which assignment is meant is not clear, or the row of the points possible is missing.
    """
    grade = _assignment(table, column)
    points = next((row for row in table.rows if POINTS_POSSIBLE in row[0]), None)
    if points is None:
        raise CourseError(f"{table.name} lacks the row {POINTS_POSSIBLE}: export Canvas's gradebook again.")
    if READ_ONLY in points[grade]:
        raise CourseError(f"Canvas calculates the column {table.header[grade]} itself: name another with --column.")
    number = table.header.index("ID")
    rows = []
    for cells in table.rows[1:]:
        if cells is not points and cells[number].strip():
            kept = cells[grade].strip()
            why = f"Canvas has {kept} there" if kept.casefold() in ("ex", "n/a") else ""
            name = ", ".join(cells[:number])
            rows.append(Row(cells, cells[number].strip(), name, points[grade], why))
    return Layout("Canvas", rows, grade)


def _assignment(table: Table, wanted: str | None) -> int:
    """The column of an assignment."""
    numbers = {place: match[1] for place, name in enumerate(table.header) if (match := _ASSIGNMENT.fullmatch(name))}
    chosen = [place for place in numbers if wanted is None or wanted in (table.header[place], numbers[place])]
    if wanted is not None and not chosen:
        chosen = [place for place in numbers if wanted.casefold() in table.header[place].casefold()]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(table.header[place] for place in numbers) or "none"
    raise CourseError(f"Name the assignment's column in {table.name} with --column; there are: {names}.")
