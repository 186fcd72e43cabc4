"""Where learners get no further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.mistakes import Mistake, mistakes_in
from lmcourse.grading.classroom.questions import Question
from lmcourse.grading.classroom.standing import has_begun, standing_of
from lmcourse.grading.result import Result


@dataclass(frozen=True)
class Stop:
    """One exercise, as a place to stop: for somebody who began, the first that they did not solve.

    Attributes:
        question: the exercise.
        reached: how many of those who began solved every exercise before it.
        stopped: who of them did not solve this one.
        untried: how many of those left it unanswered.
        gave_up: who of them answered nothing after it, though more was asked.
        mistake: the known misconception that most of those who stopped share, if there is one.
    """

    question: Question
    reached: int
    stopped: tuple[str, ...]
    untried: int
    gave_up: tuple[str, ...]
    mistake: Mistake | None

    @property
    def went_on(self) -> int:
        """How many of those who stopped here did not give up."""
        return len(self.stopped) - len(self.gave_up)


def first_unsolved(result: Result, questions: Sequence[Question]) -> Question | None:
    """Where somebody stopped; nothing if they solved everything, or answered nothing at all."""
    if not has_begun(result):
        return None
    return next((question for question in questions if standing_of(result, question.name) != "solved"), None)


def gave_up(result: Result, questions: Sequence[Question]) -> bool:
    """Whether they answered nothing after the place where they stopped. After the last exercise nothing is asked."""
    stop = first_unsolved(result, questions)
    later = [question for question in questions if stop and question.number > stop.number]
    return bool(later) and all(standing_of(result, question.name) == "unanswered" for question in later)


def stops_in(questions: Sequence[Question], results: Sequence[Result]) -> tuple[Stop, ...]:
    """Every exercise as a place to stop, in the notebook's order."""
    reached = sum(has_begun(result) for result in results)
    stops = []
    for question in questions:
        here = [result for result in results if first_unsolved(result, questions) == question]
        known = (mistake for mistake in mistakes_in(question, here) if mistake.known)
        stops.append(
            Stop(
                question,
                reached,
                stopped=tuple(result.student for result in here),
                untried=sum(standing_of(result, question.name) == "unanswered" for result in here),
                gave_up=tuple(result.student for result in here if gave_up(result, questions)),
                mistake=next(known, None),
            )
        )
        reached -= len(here)
    return tuple(stops)
