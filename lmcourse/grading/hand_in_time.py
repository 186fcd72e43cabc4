"""Read the time at which a submission was handed in from the `timestamp.txt` that nbgrader's exchange writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lmcourse.grading import files

TIMESTAMP = "timestamp.txt"
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)  # a hand-in time must be later; the course was released after it
CLOCK_SKEW = timedelta(minutes=10)  # how far the clock of another machine may be ahead

_TIME = re.compile(r"([\d-]+[ T][\d:.,]+)\s*(\S{0,40})", re.ASCII)


@dataclass(frozen=True)
class HandInTime:
    """The time at which a submission was handed in, if it is known."""

    text: str = ""  # in UTC, in nbgrader's format
    note: str = ""  # one sentence if a `timestamp.txt` was rejected


def hand_in_time(notebook: Path) -> HandInTime:
    """Return the time in the `timestamp.txt` next to a notebook, or the file's own time if that is impossible."""
    path = notebook.parent / TIMESTAMP
    if not path.exists() and not path.is_symlink():
        return HandInTime()
    try:
        text = files.read_file(path)[:100].decode(errors="replace").strip()
        return HandInTime(_in_nbgraders_format(_parsed(text)) if text else "")
    except files.UnreadableError:
        wrong = "it is not a text file"
    except ValueError as error:
        wrong = str(error)
    try:
        saved = datetime.fromtimestamp(notebook.stat().st_mtime, UTC)
        text = _in_nbgraders_format(saved)
    except (OSError, ValueError, OverflowError):
        return HandInTime(note=f"{TIMESTAMP} is not accepted ({wrong}); the time of handing in is unknown.")
    note = f"{TIMESTAMP} is not accepted ({wrong}); the time at which the notebook was saved counts"
    return HandInTime(text, f"{note}, {saved:%Y-%m-%d %H:%M} UTC.")


def _parsed(text: str) -> datetime:
    """Parse a time, in UTC unless it has a zone; raise `ValueError` with the reason if it is invalid.

    nbgrader's `parse_utc` reads the minutes of +0530 as hours.
    """
    try:
        clock, zone = _TIME.fullmatch(text).groups()  # type: ignore[union-attr]
        datetime.fromisoformat(clock)
    except (AttributeError, ValueError) as error:
        raise ValueError("it is not a date") from error
    try:
        return datetime.fromisoformat(clock + ("Z" if zone.upper() in ("", "UTC", "GMT") else zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"its time zone {zone} is unknown") from error


def _in_nbgraders_format(time: datetime) -> str:
    if time > datetime.now(UTC) + CLOCK_SKEW:
        raise ValueError("it is in the future")
    if time < EARLIEST:
        raise ValueError("it is before the course was released")
    return f"{time:%Y-%m-%d %H:%M:%S.%f} UTC"
