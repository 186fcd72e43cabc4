"""How late a submission is, and what that costs: nbgrader's due date, extensions and penalty, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class Lateness:
    """How late a submission is.

    Attributes:
        seconds: after the due date, a student's extension included; 0 if it is in time, or if either is not known.
        penalty: the points that it costs, as nbgrader's plugin says.
        note: one sentence if the time in `timestamp.txt` is not believed.
    """

    seconds: float = 0.0
    penalty: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        """In words: "Late by 2 h, penalty 3 points."; nothing if there is nothing to say."""
        cost = (
            f"penalty {self.penalty:g} {'point' if self.penalty == 1 else 'points'}" if self.penalty else "no penalty"
        )
        late = [f"Late by {duration(self.seconds)}, {cost}."] if self.seconds > 0 else []
        return " ".join([*late, self.note] if self.note else late)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"late_seconds": self.seconds, "late_penalty": self.penalty, "late": str(self)}


def lateness_of(recorded: Any, note: str = "") -> Lateness:
    """How late a submission in the gradebook is.

    Args:
        recorded: nbgrader's `SubmittedAssignment`, while its gradebook is open.
        note: what is wrong with the time that it claims.
    """
    return Lateness(float(recorded.total_seconds_late), float(recorded.late_submission_penalty or 0.0), note)


def duration(seconds: float) -> str:
    """A duration in its two largest units: "2 h", "1 d 3 h", "25 min"."""
    left = max(round(seconds), 1)
    parts: list[str] = []
    for size, unit in UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return " ".join(filter(None, parts[:2]))
