"""How one submission does: whether it could be graded, whether it was begun, and how it does in each exercise."""

from __future__ import annotations

from typing import Literal

from lmcourse.grading.result import Result

Standing = Literal["solved", "partly", "wrong", "unanswered"]


def is_graded(result: Result) -> bool:
    """Whether its exercises could be judged."""
    return bool(result.reports)


def has_begun(result: Result) -> bool:
    """Whether at least one exercise is answered."""
    return any(report.answered for report in result.reports.values())


def standing_of(result: Result, exercise: str) -> Standing:
    """All points of an exercise, some, none, or not answered. No report is no answer."""
    report = result.reports.get(exercise)
    if report is None or not report.answered:
        return "unanswered"
    if report.passed:
        return "solved"
    return "partly" if report.points > 0 else "wrong"
