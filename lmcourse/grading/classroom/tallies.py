"""How a class did in each exercise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from lmcourse.grading.classroom.questions import Question
from lmcourse.grading.classroom.standing import Standing, standing_of
from lmcourse.grading.result import Result
from lmcourse.report import Report


@dataclass(frozen=True)
class Failing:
    """One category of hidden cases, and how many answers fail at least one of its cases."""

    category: str
    answers: int


@dataclass(frozen=True)
class Tally:
    """One exercise.

    Attributes:
        question: which.
        counts: how many submissions solve it, earn some points, none, or leave it unanswered.
        answered: how many answer it.
        share: mean share of its points, from 0 to 1; unanswered counts as 0.
        failing: the categories of hidden cases that somebody fails, those most failed first.
    """

    question: Question
    counts: dict[Standing, int]
    answered: int
    share: float
    failing: tuple[Failing, ...]


def tally(question: Question, results: Sequence[Result]) -> Tally:
    """How these submissions, all of them graded, did in one exercise."""
    name = question.name
    standings = [standing_of(result, name) for result in results]
    reports = [result.reports[name] for result in results if standing_of(result, name) != "unanswered"]
    return Tally(
        question,
        {standing: standings.count(standing) for standing in get_args(Standing)},
        len(reports),
        sum(report.points / report.max_points for report in reports) / len(results),
        _failing(reports),
    )


def _failing(reports: Sequence[Report]) -> tuple[Failing, ...]:
    found = Counter(category for report in reports for category in _failed_categories(report))
    return tuple(Failing(category, count) for category, count in found.most_common())


def _failed_categories(report: Report) -> list[str]:
    return list(dict.fromkeys(case.name for case in report.cases if case.hidden and not case.passed))
