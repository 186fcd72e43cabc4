"""Learners' mail addresses: from the gradebook or a table, and what is none."""

from __future__ import annotations

import re
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.grade_tables.table import read_table

STUDENT_COLUMNS = ("student", "student id", "id", "full name")
"""Names of a column that may hold the students, as the gradebook calls them; the first that is there counts."""

EMAIL_COLUMNS = ("email", "email address", "e-mail")

# Nothing that a header of a message takes for more than a letter of the address.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


def is_address(text: str) -> bool:
    """Whether this is a plain address: one of ASCII, without a name or a comment."""
    return _ADDRESS.fullmatch(text) is not None and len(text) <= 254


def addresses_in(path: Path) -> dict[str, str]:
    """Addresses by student, from a CSV file with a column for each: Moodle's worksheet is one.

    Raises:
        CourseError: it is no such file, or has a student twice.
    """
    table = read_table(path)
    places = []
    for names in (STUDENT_COLUMNS, EMAIL_COLUMNS):
        found = [place for name in names if (place := table.column(name)) is not None]
        if not found:
            raise CourseError(f"{path.name} has no column {names[0]}: its first line should be student,email.")
        places.append(found[0])
    student, email = places
    addresses: dict[str, str] = {}
    for row in table.rows[1:]:
        name = row[student].strip()
        if name in addresses:
            raise CourseError(f"{path.name} has {name} twice: who gets the feedback?")
        addresses[name] = row[email].strip()
    return {name: address for name, address in addresses.items() if name and address}
