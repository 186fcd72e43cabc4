"""The placeholder for a solution in a student's notebook."""

from __future__ import annotations

import re

STUB = "# Your code here\nraise NotImplementedError"


def drop_at_top_level(text: str) -> str:
    """Return a cell without the stubs outside functions.

    Outside functions a stub would stop "Run All", and learners would have to delete it; `answer = None` is enough.
    """
    return re.sub(rf"(?m)^{re.escape(STUB)}(\n|\Z)", "", text).rstrip("\n")
