"""Where the core of a notebook ends: at the heading `## Further`, in its source and in the notebooks built from it."""

from __future__ import annotations

import re
from collections.abc import Sequence

FURTHER = re.compile(r"^## Further$", re.MULTILINE)


def core_length(cells: Sequence[tuple[str, str]]) -> int:
    """Return the number of cells of the core, all if nothing is `## Further`. A cell is its kind and its text."""
    places = (place for place, (kind, text) in enumerate(cells) if kind == "markdown" and FURTHER.search(text))
    return next(places, len(cells))
