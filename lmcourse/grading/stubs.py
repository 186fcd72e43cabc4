"""The placeholder that a student's notebook has in place of a solution."""

from __future__ import annotations

import re

STUB = "# Your code here\nraise NotImplementedError"
"""Replacement of a solution inside a function or a method."""


def drop_at_top_level(text: str) -> str:
    """Return a cell without the stubs outside functions.

    There a stub would stop "Run All", and be one more thing to delete: `answer = None` says enough.
    """
    return re.sub(rf"(?m)^{re.escape(STUB)}(\n|\Z)", "", text).rstrip("\n")
