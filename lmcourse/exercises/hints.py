"""Staged hints: each call shows one more, from a nudge to nearly the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.exercises.registry import find_exercise
from lmcourse.report.html import HINT, TEXT, with_marks

_shown: Counter[str] = Counter()


@dataclass(frozen=True)
class Hint:
    """One hint of an exercise, and how many there are."""

    text: str
    number: int
    total: int

    def __repr__(self) -> str:
        more = "" if self.number == self.total else " (run the cell again for the next)"
        return f"Hint {self.number} of {self.total}: {self.text}{more}"

    def _repr_html_(self) -> str:
        return (
            f'<div style="color: {TEXT}; border-left: 4px solid {HINT}; padding: 0.3em 0.9em; max-width: 52em;">'
            f"{with_marks(repr(self))}</div>"
        )


def hint(exercise: str | Callable[..., Any], /) -> Hint:
    """The next hint for an exercise: `hint("stable_softmax")`, or `hint(stable_softmax)`. After the last, the last.

    Raises:
        CourseError: there is no such exercise, or it has no hints.
    """
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", "")
    if not name:
        raise CourseError('Hand `hint` the name of an exercise, in quotes: hint("stable_softmax").')
    hints = find_exercise(name).hints
    if not hints:
        raise CourseError(f"`{name}` has no hints.")
    _shown[name] = min(_shown[name] + 1, len(hints))
    return Hint(hints[_shown[name] - 1], _shown[name], len(hints))
