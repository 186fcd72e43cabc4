"""What goes wrong in a class, and how often: misconceptions that the course knows, and all else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.questions import Question
from lmcourse.grading.classroom.standing import standing_of
from lmcourse.grading.result import Result


@dataclass(frozen=True)
class Mistake:
    """Something that goes wrong in the answers of some learners to one exercise.

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


def mistakes_in(question: Question, results: Sequence[Result]) -> tuple[Mistake, ...]:
    """What goes wrong in the answers to one exercise that do not earn all points, the most frequent first."""
    found: dict[str, list[str]] = {}
    for result in results:
        if standing_of(result, question.name) in ("partly", "wrong"):
            found.setdefault(result.reports[question.name].diagnosis, []).append(result.student)
    mistakes = [
        Mistake(question, sentence, sentence in question.sentences, tuple(students))
        for sentence, students in found.items()
    ]
    return most_frequent_first(mistakes)


def most_frequent_first(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """By the number of learners; where it is the same, in the order of the notebook and then of the alphabet."""
    return tuple(sorted(mistakes, key=lambda one: (-len(one.students), one.question.number, one.sentence)))
