"""Make text safe to show, send and store: unprintable characters, line breaks, length, markup, and formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from html import escape

MAX_NAME_CHARS = 80  # largest length of a file name in a message

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CODE = re.compile(r"`([^`]+)`")
_MARKS = re.compile(rf"{_CODE.pattern}|(?<![\w*])\*(?=[^\s*])([^*`]*)(?<=\S)\*(?![\w*])")

_INDEX = re.compile(r"(<code.*?</code>)|(?<!\w)([^\W\d_](?:&#x27;)?)_([^\W_]{1,3})(?!\w)")

# Excel and LibreOffice run cells that begin with these characters, including full-width ones (OWASP, "CSV Injection").
# In countries with decimal commas, a semicolon begins a new cell, even inside quotation marks within a line.
_FORMULA = re.compile(r"(^|;)(\s*)(?=[=+\-@＝＋－＠])")


def replace_surrogates(text: str) -> str:
    """Return the text with "?" for each half of a surrogate pair, which UTF-8 cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")


def replace_unprintable(text: str, keep: str = "") -> str:
    """Return the text with a space for each character that is not printable (`str.isprintable`).

    Args:
        text: any text.
        keep: unprintable characters that may stay, such as line breaks.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else " " for char in text)


def escape_unprintable(text: str, max_chars: int) -> str:
    r"""Return a short text with escapes such as \u202e for unprintable characters and changes of writing direction."""
    return shorten("".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text), max_chars)


def escaped_name(name: str) -> str:
    """Return the name of a file or folder as one short printable line."""
    return escape_unprintable(name, MAX_NAME_CHARS)


def collapse_whitespace(text: str) -> str:
    """Return the text in one line: line breaks, control characters and repeated spaces become a single space.

    Characters that join letters or change the writing direction stay, because some people's names need them.
    """
    return " ".join(_CONTROLS.sub(" ", text).split())


def one_line(text: str, max_chars: int) -> str:
    """Return a text in one printable line of at most `max_chars` characters, with ⏎ for its line breaks."""
    line = replace_unprintable(" ⏎ ".join(text[: 2 * max_chars].splitlines()))
    return line if len(text) <= max_chars and len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def shorten(text: str, max_chars: int) -> str:
    """Return the text if it has at most `max_chars` characters; otherwise its beginning, followed by "…"."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def code_html(text: str, style: str = "") -> str:
    """Return any text as HTML, escaped; `backticks` become code with this CSS style."""
    return _CODE.sub(lambda found: _code(found[1], style), escape(text))


def prose_html(text: str, style: str = "") -> str:
    """Return a sentence of the course as HTML: `code_html`, and *asterisks* outside code become emphasis."""
    return _MARKS.sub(lambda found: f"<em>{found[2]}</em>" if found[2] else _code(found[1], style), escape(text))


def question_html(text: str) -> str:
    """Return a question or its answer as HTML: `prose_html`, and the index of a letter (W_ij) is set below it."""
    return _INDEX.sub(lambda found: found[1] or f"{found[2]}<sub>{found[3]}</sub>", prose_html(text))


def _code(text: str, style: str) -> str:
    return f'<code style="{style}">{text}</code>' if style else f"<code>{text}</code>"


def without_formulas(text: str) -> str:
    """Return the text in one line, with an apostrophe before each part that a spreadsheet would run as a formula."""
    return _FORMULA.sub(r"\1\2'", collapse_whitespace(replace_surrogates(text)))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str | int | float]]) -> str:
    """Return a table as CSV (RFC 4180) with all texts quoted and without formulas. 2.0 is written as 2."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    for row in (header, *rows):
        texts = [without_formulas(cell) if isinstance(cell, str) else cell for cell in row]
        writer.writerow([int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in texts])
    return buffer.getvalue()
