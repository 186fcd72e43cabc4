"""What a cell prints: the first of it is kept, and too much of it ends the cell."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.isolated_state import BoundedBuffer
from lmcourse.exercises.values import Plain
from lmcourse.exercises.wire_limits import WireError
from lmcourse.exercises.wire_records import failure_from_plain, failure_to_plain, record_of
from lmcourse.text import replace_surrogates, replace_unprintable

SHOWN = 2_000
"""Characters of what a cell printed that are kept."""

FLOOD = 4_000_000
"""Characters after which a cell may print no more."""


class TooMuchPrintedError(Exception):
    """Raised inside of a cell, by its own `print`."""


class Page(BoundedBuffer):
    """Takes what a cell prints, keeps the first of it, and refuses more when it is too much."""

    def __init__(self) -> None:
        super().__init__(SHOWN)
        self.written = 0

    def write(self, text: str) -> int:
        self.written += len(text)
        if self.flooded:
            raise TooMuchPrintedError(f"this cell printed more than {FLOOD:,} characters: is there a print in a loop?")
        return super().write(text)

    @property
    def flooded(self) -> bool:
        """Whether it was too much."""
        return self.written > FLOOD


@dataclass(frozen=True)
class CellOutcome:
    """What came of a cell: what it printed, whether that was too much, and the failure it ended with."""

    printed: str = ""
    flooded: bool = False
    failure: Failure | None = None


def cell_to_plain(page: Page, failure: Failure | None) -> dict[str, Plain]:
    """What to send of a cell that was run."""
    return {
        "printed": replace_surrogates(page.getvalue()),
        "flooded": page.flooded,
        "failure": None if failure is None else failure_to_plain(failure),
    }


def cell_from_plain(value: Plain) -> CellOutcome:
    """What came of a cell, from somebody who is not trusted.

    Raises:
        WireError: the value is none that `cell_to_plain` gives.
    """
    record = record_of(value, ("printed", "flooded", "failure"))
    printed, flooded = record["printed"], record["flooded"]
    if not isinstance(printed, str) or len(printed) > SHOWN or not isinstance(flooded, bool):
        raise WireError("more printed than is kept")
    failure = None if record["failure"] is None else failure_from_plain(record["failure"])
    return CellOutcome(replace_unprintable(printed, keep="\n\t"), flooded, failure)
