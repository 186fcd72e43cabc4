"""What grading one submission gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """One submission: its points, and a sentence its author can act on.

    Attributes:
        student: the name of their folder; "me" for a learner's own notebook.
        assignment: its id, as in "01-floating-point"; empty if the notebook was not recognised.
        score, max_score: points earned and possible.
        exercises: points by exercise.
        reason: why it is not more, or that every check passed.
        seed: of the hidden cases; `LMCOURSE_SEED` set to it repeats the run.
    """

    student: str
    assignment: str
    score: float
    max_score: float
    exercises: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seed: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The result as plain data for `lmcourse grade --json`."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "score": self.score,
            "max_score": self.max_score,
            "exercises": dict(self.exercises),
            "reason": self.reason,
        }
