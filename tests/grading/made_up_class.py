"""Invented results of learners in three real exercises."""

from __future__ import annotations

from typing import Any

from lmcourse.exercises.registry import find_exercise
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import Report

CHAPTER = "08-attention"
NAMES = ("attention_weights", "causal_mask", "causal_attention")  # the names of exercises with 2, 2 and 3 points
MISTAKE = find_exercise("causal_mask").misconceptions[0].sentence


def report(name: str, points: float, mistake: str = "", answered: bool = True, after: str = "") -> Report:
    """Return a report on an answer with this many points; the diagnosis is the mistake followed by `after`."""
    most = find_exercise(name).points
    return Report(name, points, most, True, (), mistake + after, answered=answered, mistake=mistake)


def solved(name: str) -> Report:
    return report(name, find_exercise(name).points)


def unanswered(name: str) -> Report:
    return report(name, 0.0, answered=False)


def result(student: str, *reports: Report, assignment: str = CHAPTER, **rest: Any) -> SubmissionResult:
    points = {one.exercise: one.points for one in reports}
    got = {one.exercise: one for one in reports}
    return SubmissionResult(student, assignment, sum(points.values()), 7.0, points, reports=got, **rest)


def small_class() -> list[SubmissionResult]:
    """Return the results of six learners, with numbers that are easy to count by hand."""
    weights, mask, attention = NAMES
    return [
        result("Ada", *map(solved, NAMES)),
        result("Bo", solved(weights), report(mask, 1, MISTAKE, after=" See row 2."), unanswered(attention)),
        result("Cy", report(weights, 0), solved(mask), solved(attention)),
        result("Di", solved(weights), report(mask, 0, MISTAKE), report(attention, 0)),
        result("Ed", *map(unanswered, NAMES)),
        result("Flo", reason="It cannot be read as a notebook."),
    ]
