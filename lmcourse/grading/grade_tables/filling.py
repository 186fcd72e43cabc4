"""Fill grades into a platform's table. Nobody is guessed: number and name have to agree, and to be there once."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.class_report.tables import without_formulas
from lmcourse.grading.grade_tables.canvas import canvas_layout, is_canvas
from lmcourse.grading.grade_tables.moodle import is_moodle, moodle_layout
from lmcourse.grading.grade_tables.table import Layout, Row, Table, number_in, number_like, read_table, write_table
from lmcourse.grading.intake.downloads import Person
from lmcourse.grading.result import SubmissionResult

SUFFIX = "-graded"
"""What is added to the name of the file; the original stays as it is."""

_OUR_COMMENT = re.compile(r"[0-9.]+ of [0-9.]+ points\. ")


@dataclass(frozen=True)
class Filled:
    """A table that was filled in.

    Attributes:
        path: the new file.
        grades: what was written for each student, who is as in the gradebook.
        left: a line for each row and person that got no grade, or whose comment was kept.
    """

    path: Path
    grades: dict[str, str]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """A table of a platform that can be filled in: its file, its cells, and who and what is where."""

    path: Path
    table: Table
    layout: Layout


def read_sheet(path: Path, people: Sequence[Person], column: str | None = None) -> Sheet:
    """The table in a file.

    Args:
        path: Moodle's worksheet or Canvas's gradebook.
        people: those who handed in.
        column: which assignment, in a table of several.

    Raises:
        CourseError: it is no such table, or of another platform than the submissions.
    """
    table = read_table(path)
    layout = _layout(table, column)
    if not people or any(person.platform != layout.platform for person in people):
        raise CourseError(
            f"{path.name} is {layout.platform}'s: grade what {layout.platform} gave for download with it."
        )
    return Sheet(path, table, layout)


def fill_in(sheet: Sheet, people: Sequence[Person], results: Mapping[str, SubmissionResult]) -> Filled:
    """Write grades into a copy of a table, beside it.

    The grade is the share of the points that they have of all, of what the platform gives for all.

    Args:
        sheet: the table.
        people: those who handed in.
        results: by student.

    Raises:
        CourseError: the copy cannot be written.
    """
    layout = sheet.layout
    grades, left = {}, []
    for person in people:
        row = _row_of(person, layout.rows)
        result = results.get(person.student)
        problem = row if isinstance(row, str) else _why_not(row, result)
        if problem or isinstance(row, str) or result is None:
            left.append(f"{person.student}: {problem}. No grade was filled in.")
            continue
        grades[person.student] = row.cells[layout.grade] = _grade(row, result)
        if layout.comment is not None and not _comment(row, layout.comment, result):
            left.append(f"{person.student}: a comment stood there already; it was kept.")
    handed_in = {person.number for person in people}
    missing = [row.name or row.number for row in layout.rows if row.number not in handed_in]
    left += [f"{without_formulas(name)}: nothing was handed in; the row was left as it is." for name in missing]
    new = sheet.path.with_stem(sheet.path.stem + SUFFIX)
    write_table(sheet.table, new)
    return Filled(new, grades, tuple(left))


def _layout(table: Table, column: str | None) -> Layout:
    if is_moodle(table):
        return moodle_layout(table, column)
    if is_canvas(table):
        return canvas_layout(table, column)
    raise CourseError(
        f"{table.name} is neither Moodle's grading worksheet (Identifier, Full name, … Grade) nor Canvas's gradebook "
        "(Student, ID, …): download it with the platform set to English."
    )


def _row_of(person: Person, rows: Sequence[Row]) -> Row | str:
    """The row of a person, or why it is not clear."""
    found = [row for row in rows if row.number == person.number]
    if not found:
        return f"the table has no row with their number {person.number}"
    if len(found) > 1:
        return f"the table has {len(found)} rows with their number {person.number}"
    if found[0].name and _letters(found[0].name) != _letters(person.name):
        return f"number {person.number} is {without_formulas(found[0].name)} in the table"
    return found[0]


def _letters(name: str) -> str:
    """A name without what platforms leave out of names of files: spaces, commas, apostrophes, case and accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", name).casefold() if char.isalnum())


def _why_not(row: Row, result: SubmissionResult | None) -> str:
    """Why no grade can be written into a row; or nothing."""
    if row.locked:
        return row.locked
    if result is None or result.max_score <= 0 or result.failed:
        return result.reason.rstrip(".") if result else "they were not graded"
    maximum = number_in(row.maximum)
    return "" if maximum else f"the table gives no number of points for their work, but “{row.maximum}”"


def _grade(row: Row, result: SubmissionResult) -> str:
    return number_like((number_in(row.maximum) or 0.0) * result.score / result.max_score, row.maximum)


def _comment(row: Row, place: int, result: SubmissionResult) -> bool:
    """Write the points and the reason, which Moodle takes for HTML; False if somebody else's comment stands there."""
    if row.cells[place].strip() and not _OUR_COMMENT.match(row.cells[place]):
        return False
    text = f"{result.score:g} of {result.max_score:g} points. {result.reason}"
    row.cells[place] = html.escape(without_formulas(text), quote=False)
    return True
