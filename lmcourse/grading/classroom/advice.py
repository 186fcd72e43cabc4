"""What to explain next: a few sentences on each exercise where most learners stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.stops import Stop

MOST = 3
"""Places to stop that a teacher is told about."""


@dataclass(frozen=True)
class Advice:
    """What a teacher can do about one place, with code in `backticks`. Nothing in it was written by a learner.

    Attributes:
        place: how many stop where.
        answers: what their answers have in common.
        hint: the first hint of the exercise; empty if it has none.
    """

    place: str
    answers: str
    hint: str


def what_to_explain(stops: Sequence[Stop]) -> list[Advice]:
    """Advice on the places where most learners stop; where it is the same number, in the notebook's order."""
    places = sorted((stop for stop in stops if stop.stopped), key=lambda stop: -len(stop.stopped))
    return [Advice(_place(stop), _answers(stop), stop.question.hint) for stop in places[:MOST]]


def _place(stop: Stop) -> str:
    count = len(stop.stopped)
    who = f"{count} of {stop.reached}" if stop.reached > 1 else "The only one"
    return f"{who} who got here {'stops' if count == 1 else 'stop'} at `{stop.question.name}`."


def _answers(stop: Stop) -> str:
    answers = len(stop.stopped) - stop.untried
    untried = f"{stop.untried} left it unanswered. " if stop.untried else ""
    if not answers:
        return "Nobody tried it."
    if stop.mistake is None:
        return f"{untried}The course knows none of the mistakes in {_their(answers)}."
    same = len(stop.mistake.students)
    who = "Their answer" if answers == 1 else f"{same} of {_their(answers)}"
    return f"{untried}{who} {'makes' if same == 1 else 'make'} this mistake: “{stop.mistake.sentence}”"


def _their(answers: int) -> str:
    return "their answer" if answers == 1 else f"their {answers} answers"
