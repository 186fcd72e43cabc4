"""When a submission came: what nbgrader's `timestamp.txt` says, as far as it can be true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.utils import parse_utc

from lmcourse.grading.intake.files import UnreadableError, read_file

TIMESTAMP = "timestamp.txt"
"""The file beside a notebook in which nbgrader's exchange says when it came."""

EARLIEST = datetime(2020, 1, 1)
"""Nothing of this course was handed out before."""

CLOCK_SKEW = timedelta(minutes=10)
"""How far the clock of the machine that wrote a time may be ahead."""

_PATTERN = re.compile(
    r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?: ?(?:Z|[A-Za-z]{2,6}|[+-]\d{2}:?\d{2}))?"
)


@dataclass(frozen=True)
class HandInTime:
    """When a submission came.

    Attributes:
        text: the time as nbgrader reads and writes it, in UTC; empty if it is not known.
        note: one sentence if `timestamp.txt` is there and not believed.
    """

    text: str = ""
    note: str = ""


def hand_in_time(notebook: Path) -> HandInTime:
    """When a notebook came; not known where no `timestamp.txt` lies beside it.

    One that says what cannot be true is no reason to stop: then the time counts at which the notebook was last saved.

    Args:
        notebook: the file.
    """
    path = notebook.parent / TIMESTAMP
    if not path.exists() and not path.is_symlink():
        return HandInTime()
    claimed, wrong = _claimed(path)
    if claimed is not None and not (wrong := _impossible(claimed)):
        return HandInTime(_written(claimed))
    if not wrong:
        return HandInTime()
    saved = _last_saved(notebook)
    if saved is None or _impossible(saved):
        return HandInTime(note=f"{TIMESTAMP} is not believed ({wrong}); when the notebook came is unknown.")
    counted = f"{saved:%Y-%m-%d %H:%M} UTC"
    return HandInTime(
        _written(saved),
        f"{TIMESTAMP} is not believed ({wrong}); what counts is when the notebook was saved, {counted}.",
    )


def _claimed(path: Path) -> tuple[datetime | None, str]:
    """The time in a file, or what is wrong with it; neither if it is empty."""
    try:
        text = read_file(path)[:100].decode().strip()
        if not text:
            return None, ""
        # A name of a time zone is looked up among files, so no text of a learner's gets that far.
        return (parse_utc(text), "") if _PATTERN.fullmatch(text) else (None, "it holds no date")
    except (UnreadableError, ValueError, OverflowError):
        return None, "it holds no date"


def _impossible(time: datetime) -> str:
    if time > datetime.now(UTC).replace(tzinfo=None) + CLOCK_SKEW:
        return "it is in the future"
    return "it is before the release" if time < EARLIEST else ""


def _last_saved(notebook: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(notebook.stat().st_mtime, UTC).replace(tzinfo=None)
    except (OSError, ValueError, OverflowError):
        return None


def _written(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S.%f} UTC"
