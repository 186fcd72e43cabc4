"""Text that somebody else wrote, made fit to be shown in one line."""

from __future__ import annotations

import re

NAME = 48
"""Characters of a name on the page; the tables have all of it."""

_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str, longest: int | None = None) -> str:
    """The text without control characters and line breaks, and without halves of characters that no file can hold.

    Args:
        text: any.
        longest: how many characters may stay; the last of them is then "…".
    """
    whole = text.encode("utf-8", "replace").decode()
    line = " ".join(_BREAKING.sub(" ", whole).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def shown_name(student: str) -> str:
    """A name for the page."""
    return one_line(student, NAME) or "(no name)"
