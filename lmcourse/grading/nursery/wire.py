"""What the grader and the keeper have agreed on. Guests have no part in it."""

from __future__ import annotations

READY = b"ready\n"
"""Said by the keeper when everything is loaded, and by a guest, over its witness, before it hears of the notebook."""

KILL = b"kill"

LONGEST = 2**16
"""Bytes of the longest message."""

DATA = "/assignment"
"""Where the keeper has the data files. A guest has them in its working folder."""
