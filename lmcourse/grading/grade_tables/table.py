"""A CSV file of a platform: read and written again, everything that is not filled in as it was."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.errors import CourseError

_BOM = "\ufeff"
_NUMBER = re.compile(r"-?[0-9][0-9.,]*")


@dataclass
class Table:
    """A table, and how its file was written.

    Attributes:
        name: of its file.
        rows: its cells; the first row is the header.
        delimiter, line_end, bom: as in the file.
    """

    name: str
    rows: list[list[str]]
    delimiter: str
    line_end: str
    bom: bool

    @property
    def header(self) -> list[str]:
        """The names of its columns."""
        return [cell.strip() for cell in self.rows[0]]

    def column(self, name: str) -> int | None:
        """The place of a column, whatever case its name is written in."""
        names = [each.casefold() for each in self.header]
        return names.index(name.casefold()) if name.casefold() in names else None


@dataclass
class Row:
    """The row of one person.

    Attributes:
        cells: of the table itself, to be written to.
        number, name: by which the platform knows them.
        maximum: the grade for all points, as the table has it.
        locked: why no grade is to be written here; empty if one may be.
    """

    cells: list[str]
    number: str
    name: str
    maximum: str
    locked: str = ""


@dataclass
class Layout:
    """Where in a table grades are written: its rows of people, and the columns for a grade and a comment."""

    platform: str
    rows: Sequence[Row]
    grade: int
    comment: int | None = None


def read_table(path: Path) -> Table:
    """The table in a CSV file, with commas or, as some spreadsheets save it, semicolons.

    Raises:
        CourseError: it is none.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise CourseError(
            f"{path.name} is not UTF-8: use the file as it was downloaded, or save it as UTF-8."
        ) from error
    bom, text = text.startswith(_BOM), text.removeprefix(_BOM)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise CourseError(f"{path.name} is no CSV file ({error}): use the file as it was downloaded.") from error
    rows = [row for row in rows if row]
    if not rows:
        raise CourseError(f"{path.name} is empty: download it again.")
    width = len(rows[0])
    for row in rows:
        row += [""] * (width - len(row))
    return Table(path.name, rows, delimiter, "\r\n" if first.endswith("\r") else "\n", bom)


def write_table(table: Table, path: Path) -> None:
    """Write a table into a file, which appears at once or not at all.

    Raises:
        CourseError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("w", encoding="utf-8", newline="") as file:
            file.write(_BOM if table.bom else "")
            csv.writer(file, delimiter=table.delimiter, lineterminator=table.line_end).writerows(table.rows)
        new.replace(path)
    except OSError as error:
        raise CourseError(f"{path} cannot be written ({error.strerror}): close it where it is open.") from error
    finally:
        new.unlink(missing_ok=True)


def number_in(text: str) -> float | None:
    """The number in a cell, with a point or a comma before its decimals; None if it holds none."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    whole, mark, decimals = text.strip().replace(",", ".").rpartition(".")
    return float(f"{whole.replace('.', '')}{mark}{decimals}")


def number_like(value: float, example: str) -> str:
    """A number with two decimals, after a comma if the example has one there."""
    comma = "," in example and example.rfind(",") > example.rfind(".")
    return f"{value:.2f}".replace(".", "," if comma else ".")
