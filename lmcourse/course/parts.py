"""The parts of a notebook: its core, and what is below the heading `## Further`, in its source and in what is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FURTHER = re.compile(r"^## Further$", re.MULTILINE)

_COUNTS = r"(\d+) min · \d+ exercises? · \d+ points?\*\*"
TOTALS = re.compile(rf"^\*\*(?:Core · )?{_COUNTS}(?: · \*\*Further · {_COUNTS})?$", re.MULTILINE)
"""The line of the first cell with a notebook's totals, or with those of its two parts."""


def core_length(cells: Sequence[tuple[str, str]]) -> int:
    """Return the number of cells of the core, all if nothing is `## Further`. A cell is its kind and its text."""
    places = (place for place, (kind, text) in enumerate(cells) if kind == "markdown" and FURTHER.search(text))
    return next(places, len(cells))


def minutes_in(text: str) -> tuple[int, ...]:
    """Return the minutes in a first cell: of the notebook, or of its core and of Further; nothing without totals."""
    found = TOTALS.search(text)
    return tuple(int(minutes) for minutes in found.groups() if minutes) if found else ()


def joined(counts: Iterable[float]) -> str:
    """Return the counts of a notebook's parts as a text, such as "88 + 70"."""
    return " + ".join(f"{count:g}" for count in counts)
