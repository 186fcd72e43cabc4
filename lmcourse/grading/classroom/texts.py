"""Text that somebody else wrote, made fit to be shown in one line."""

from __future__ import annotations

import unicodedata

NAME = 48
"""Characters of a name on the page; the tables have all of it."""

_BREAKING = {"Cc", "Zl", "Zp"}


def one_line(text: str, longest: int | None = None) -> str:
    """The text without control characters and line breaks, and without halves of characters that no file can hold.

    Args:
        text: any.
        longest: how many characters may stay; the last of them is then "…".
    """
    whole = text.encode("utf-8", "replace").decode()
    spaced = "".join(" " if unicodedata.category(c) in _BREAKING else c for c in whole)
    line = " ".join(spaced.split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def shown_name(student: str) -> str:
    """A name for the page."""
    return one_line(student, NAME) or "(no name)"
