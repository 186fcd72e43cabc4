"""CSV that any spreadsheet reads and none of them runs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from lmcourse.grading.classroom.texts import one_line

Cell = str | int | float

# Excel and LibreOffice calculate a cell that begins so, the full-width forms too (OWASP, "CSV Injection"). Where people
# write 0,5 for a half, a semicolon begins a new cell, and quotation marks hide it only at the start of a line.
_FORMULA = re.compile(r"(^|;)(\s*)(?=[=+\-@＝＋－＠])")


def harmless(text: str) -> str:
    """The text in one line, with an apostrophe before whatever a spreadsheet would take for a formula."""
    return _FORMULA.sub(r"\1\2'", one_line(text))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table after RFC 4180. Numbers stay numbers; every text is quoted and harmless."""
    paper = io.StringIO()
    writer = csv.writer(paper, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([harmless(name) for name in header])
    writer.writerows([harmless(cell) if isinstance(cell, str) else _short(cell) for cell in row] for row in rows)
    return paper.getvalue()


def _short(number: int | float) -> int | float:
    """The number 2.0 as 2: the points of one column look alike, wherever they come from."""
    return int(number) if number == int(number) else number
