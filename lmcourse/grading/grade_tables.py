"""Fill in the tables of grades that Moodle and Canvas export and import."""

from __future__ import annotations

import csv
import html
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.base.text import without_formulas
from lmcourse.grading.downloads import Person, Platform
from lmcourse.grading.result import SubmissionResult

SUFFIX = "-graded"  # added to the file name of a table with grades; the original file is not changed

_CANVAS_COLUMN = re.compile(r".*\(([0-9]+)\)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9][0-9.,]*")
_OUR_COMMENT = re.compile(r"[0-9.]+ of [0-9.]+ points\. ")
_BOM = "\ufeff"


@dataclass
class Row:
    """The row of one person in a table of grades."""

    cells: list[str]  # the cells of the table itself
    number: str
    name: str
    maximum: str  # the grade for the full number of points
    locked: str  # why the platform does not accept a grade in this row


@dataclass
class Sheet:
    """A table of grades from a platform, the format of its file, and the columns for grades and comments."""

    path: Path
    cells: list[list[str]]
    header: list[str]  # the names of the columns
    columns: dict[str, int]  # the index of each column, by its name in lower case
    delimiter: str
    line_end: str
    bom: bool
    platform: Platform = "Moodle"
    rows: Sequence[Row] = ()
    grade: int = 0
    comment: int | None = None


@dataclass(frozen=True)
class Filled:
    """A table with grades filled in."""

    path: Path
    grades: dict[str, str]  # grades by the student's id in the gradebook
    left: tuple[str, ...]  # one sentence for each person or row without a grade, and for each old comment that was kept


def read_sheet(path: Path, people: Sequence[Person], column: str | None = None) -> Sheet:
    """Read these people's worksheet from Moodle, or their gradebook from Canvas; `column` names the assignment."""
    sheet = _read_csv(path)
    if "identifier" in sheet.columns and "grade" in sheet.columns:
        _find_moodle_rows(sheet, column)
    elif "ID" in sheet.header and ("Student" in sheet.header[:1] or sheet.header[:2] == ["LastName", "FirstName"]):
        _find_canvas_rows(sheet, column)
    else:
        expected = "Moodle's grading worksheet (Identifier, Full name, … Grade) nor Canvas's gradebook (Student, ID, …)"
        raise CourseError(f"{path.name} is neither {expected}. Set the platform to English and download it again.")
    if not people or any(person.platform != sheet.platform for person in people):
        raise CourseError(f"{path.name} is from {sheet.platform}. Use it with a download from {sheet.platform}.")
    return sheet


def fill_in(sheet: Sheet, people: Sequence[Person], results: Mapping[str, SubmissionResult]) -> Filled:
    """Write grades into a copy of a table, in the same folder. Results are by student id.

    A person gets a grade if both number and name match a row. The grade is the fraction of points times the platform's
    maximum.
    """
    grades, left = {}, []
    for person in people:
        result = results.get(person.student)
        row = _row_of(person, sheet.rows, result)
        if isinstance(row, str) or result is None:
            left.append(f"{person.student}: {row}. No grade was filled in.")
            continue
        grade = _number_in(row.maximum) * result.score / result.max_score
        mark = "," if row.maximum.rfind(",") > row.maximum.rfind(".") else "."  # the decimal mark
        grades[person.student] = row.cells[sheet.grade] = f"{grade:.2f}".replace(".", mark)
        comment = "" if sheet.comment is None else row.cells[sheet.comment]
        if comment.strip() and not _OUR_COMMENT.match(comment):
            left.append(f"{person.student}: the row already had a comment, which was kept.")
        elif sheet.comment is not None:
            text = f"{result.score:g} of {result.max_score:g} points. {result.reason}"
            row.cells[sheet.comment] = html.escape(without_formulas(text), quote=False)
    numbers = {person.number for person in people}
    missing = [row.name or row.number for row in sheet.rows if row.number not in numbers]
    left += [f"{without_formulas(name)}: nothing was handed in; the row is unchanged." for name in missing]
    path = sheet.path.with_stem(sheet.path.stem + SUFFIX)
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=sheet.delimiter, lineterminator=sheet.line_end).writerows(sheet.cells)
    write_all({path: (_BOM if sheet.bom else "") + buffer.getvalue()}, newline="")
    return Filled(path, grades, tuple(left))


def _read_csv(path: Path) -> Sheet:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise CourseError(f"{path.name} is not UTF-8. Use the downloaded file, or save it as UTF-8.") from error
    bom, text = text.startswith(_BOM), text.removeprefix(_BOM)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # some spreadsheets use semicolons
    cells = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row] or [[""]]
    cells = [row + [""] * (len(cells[0]) - len(row)) for row in cells]
    header = [cell.strip() for cell in cells[0]]
    columns = {header[place].casefold(): place for place in reversed(range(len(header)))}
    return Sheet(path, cells, header, columns, delimiter, "\r\n" if first.endswith("\r") else "\n", bom)


def _find_moodle_rows(sheet: Sheet, column: str | None) -> None:
    """Find the rows of Moodle's worksheet (`mod/assign/feedback/offline`), one for each participant."""
    if column is not None:
        raise CourseError(f"{sheet.path.name} is from Moodle and has one assignment. Leave out --column.")
    if "maximum grade" not in sheet.columns:
        raise CourseError(f"{sheet.path.name} lacks the column Maximum Grade. Download Moodle's worksheet again.")
    sheet.grade, sheet.comment = sheet.columns["grade"], sheet.columns.get("feedback comments")
    rows = []
    for cells in sheet.cells[1:]:
        values = {name: cells[place] for name, place in sheet.columns.items()}
        if number := re.search(r"[0-9]+$", values["identifier"].strip()):
            locked = values.get("grade can be changed", "").strip().casefold() == "no"
            why = "Moodle does not allow their grade to be changed" if locked else ""
            rows.append(Row(cells, number[0], values.get("full name", ""), values["maximum grade"], why))
    sheet.rows = rows


def _find_canvas_rows(sheet: Sheet, column: str | None) -> None:
    """Find the rows of Canvas's gradebook (`lib/gradebook_importer.rb`), whose columns are like "Attention (123)"."""
    sheet.platform, sheet.grade = "Canvas", _canvas_column(sheet, column)
    if not (points := next((row for row in sheet.cells if "Points Possible" in row[0]), None)):
        raise CourseError(f"{sheet.path.name} lacks the row Points Possible. Export Canvas's gradebook again.")
    if "read only" in points[sheet.grade]:
        computed = f"Canvas computes the column {sheet.header[sheet.grade]} itself"
        raise CourseError(f"{computed}. Name another column with --column.")
    number = sheet.header.index("ID")
    rows = []
    for cells in sheet.cells[1:]:
        if cells is not points and cells[number].strip():
            kept = cells[sheet.grade].strip()
            why = f"Canvas has {kept} in their row" if kept.casefold() in ("ex", "n/a") else ""
            rows.append(Row(cells, cells[number].strip(), ", ".join(cells[:number]), points[sheet.grade], why))
    sheet.rows = rows


def _canvas_column(sheet: Sheet, wanted: str | None) -> int:
    names = sheet.header
    numbers = {place: match[1] for place, name in enumerate(names) if (match := _CANVAS_COLUMN.fullmatch(name))}
    exact = [place for place in numbers if wanted in (names[place], numbers[place])]
    chosen = exact or [place for place in numbers if (wanted or "").casefold() in names[place].casefold()]
    if len(chosen) == 1:
        return chosen[0]
    listed = ", ".join(names[place] for place in numbers) or "none"
    raise CourseError(f"Name the assignment's column in {sheet.path.name} with --column. The columns are: {listed}.")


def _row_of(person: Person, rows: Sequence[Row], result: SubmissionResult | None) -> Row | str:
    found = [row for row in rows if row.number == person.number]
    if len(found) != 1:
        return f"the table has {len(found) or 'no'} row{'s' * bool(found)} with their number {person.number}"
    (row,) = found
    if row.name and _letters(row.name) != _letters(person.name):
        return f"number {person.number} is {without_formulas(row.name)} in the table"
    if row.locked or result is None:
        return row.locked or "they were not graded"
    if result.max_score <= 0 or result.failed:
        return result.reason.rstrip(".")
    return row if _number_in(row.maximum) else f"the table has “{row.maximum}” as the largest grade, not a number"


def _letters(name: str) -> str:
    # In file names, platforms change spaces, punctuation, case and accents of names.
    return "".join(char for char in unicodedata.normalize("NFKD", name).casefold() if char.isalnum())


def _number_in(text: str) -> float:
    """Return the number in a cell, which may have a decimal point or comma; 0 if the cell has no number."""
    if not _NUMBER.fullmatch(text.strip()):
        return 0.0
    whole, mark, decimals = text.strip().replace(",", ".").rpartition(".")
    return float(f"{whole.replace('.', '')}{mark}{decimals}")
