"""Frequent mistakes, the exercises at which learners stop, and advice on what to explain next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.class_report.statistics import Question, has_begun, status_of
from lmcourse.grading.result import SubmissionResult

MAX_ADVICE = 3
"""Exercises on which a teacher gets advice."""


@dataclass(frozen=True)
class Mistake:
    """A mistake that several answers to one exercise have in common.

    Attributes:
        question: the exercise.
        sentence: what the report says of it; empty if it says nothing.
        known: whether that is a misconception of the course, so that all of them gave the same wrong answer. Otherwise
            the sentence may hold words of a learner's.
        students: whose answers, in the order of the results.
    """

    question: Question
    sentence: str
    known: bool
    students: tuple[str, ...]


def mistakes_in(question: Question, results: Sequence[SubmissionResult]) -> tuple[Mistake, ...]:
    """Mistakes in the answers to one exercise that do not earn all points, the most frequent first."""
    found: dict[str, list[str]] = {}
    for result in results:
        if status_of(result, question.name) in ("partly", "wrong"):
            found.setdefault(result.reports[question.name].diagnosis, []).append(result.student)
    mistakes = [
        Mistake(question, sentence, sentence in question.sentences, tuple(students))
        for sentence, students in found.items()
    ]
    return most_frequent_first(mistakes)


def most_frequent_first(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Sort mistakes by the number of learners; ties by the order of the notebook, then by the alphabet."""
    return tuple(sorted(mistakes, key=lambda one: (-len(one.students), one.question.number, one.sentence)))


@dataclass(frozen=True)
class DropOff:
    """How many learners stopped at one exercise: the first that they did not solve, having begun.

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
        """How many of those who stopped here did not give up (see `gave_up`)."""
        return len(self.stopped) - len(self.gave_up)


def first_unsolved(result: SubmissionResult, questions: Sequence[Question]) -> Question | None:
    """The first exercise that somebody did not solve; None if they solved everything, or answered nothing at all."""
    if not has_begun(result):
        return None
    return next((question for question in questions if status_of(result, question.name) != "solved"), None)


def gave_up(result: SubmissionResult, questions: Sequence[Question]) -> bool:
    """Whether a learner answered nothing after the first unsolved exercise; never, if that is the last one."""
    stop = first_unsolved(result, questions)
    later = [question for question in questions if stop and question.number > stop.number]
    return bool(later) and all(status_of(result, question.name) == "unanswered" for question in later)


def dropoffs_in(questions: Sequence[Question], results: Sequence[SubmissionResult]) -> tuple[DropOff, ...]:
    """The drop-off at every exercise, in the notebook's order."""
    reached = sum(has_begun(result) for result in results)
    dropoffs = []
    for question in questions:
        here = [result for result in results if first_unsolved(result, questions) == question]
        known = (mistake for mistake in mistakes_in(question, here) if mistake.known)
        dropoffs.append(
            DropOff(
                question,
                reached,
                stopped=tuple(result.student for result in here),
                untried=sum(status_of(result, question.name) == "unanswered" for result in here),
                gave_up=tuple(result.student for result in here if gave_up(result, questions)),
                mistake=next(known, None),
            )
        )
        reached -= len(here)
    return tuple(dropoffs)


@dataclass(frozen=True)
class Advice:
    """Advice to a teacher about one exercise, with code in `backticks`. Nothing in it was written by a learner.

    Attributes:
        place: how many stop where.
        answers: what their answers have in common.
        hint: the first hint of the exercise; empty if it has none.
    """

    place: str
    answers: str
    hint: str


def what_to_explain(dropoffs: Sequence[DropOff]) -> list[Advice]:
    """Advice on the places where most learners stop; where it is the same number, in the notebook's order."""
    places = sorted((dropoff for dropoff in dropoffs if dropoff.stopped), key=lambda dropoff: -len(dropoff.stopped))
    return [Advice(_place(dropoff), _answers(dropoff), dropoff.question.hint) for dropoff in places[:MAX_ADVICE]]


def _place(dropoff: DropOff) -> str:
    count = len(dropoff.stopped)
    who = f"{count} of {dropoff.reached}" if dropoff.reached > 1 else "The only one"
    return f"{who} who got here {'stops' if count == 1 else 'stop'} at `{dropoff.question.name}`."


def _answers(dropoff: DropOff) -> str:
    answers = len(dropoff.stopped) - dropoff.untried
    untried = f"{dropoff.untried} left it unanswered. " if dropoff.untried else ""
    if not answers:
        return "Nobody tried it."
    if dropoff.mistake is None:
        return f"{untried}The course knows none of the mistakes in {_their(answers)}."
    same = len(dropoff.mistake.students)
    who = "Their answer" if answers == 1 else f"{same} of {_their(answers)}"
    return f"{untried}{who} {'makes' if same == 1 else 'make'} this mistake: “{dropoff.mistake.sentence}”"


def _their(answers: int) -> str:
    return "their answer" if answers == 1 else f"their {answers} answers"
