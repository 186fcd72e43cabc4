"""Results of learners who do not exist, in three exercises that do."""

from __future__ import annotations

from typing import Any

from lmcourse.exercises.registry import find_exercise
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import Report

CHAPTER = "08-attention"
NAMES = ("attention_weights", "causal_mask", "causal_attention")
"""Exercises of 2, 2 and 3 points."""

MISTAKE = find_exercise("causal_mask").misconceptions[0].sentence


def report(name: str, points: float, mistake: str = "", answered: bool = True, after: str = "") -> Report:
    """A report on an answer that earns this many points; the diagnosis is the mistake and what comes `after` it."""
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
    """Six learners whose numbers can be counted by hand."""
    weights, mask, attention = NAMES
    return [
        result("Ada", *map(solved, NAMES)),
        result("Bo", solved(weights), report(mask, 1, MISTAKE, after=" See row 2."), unanswered(attention)),
        result("Cy", report(weights, 0), solved(mask), solved(attention)),
        result("Di", solved(weights), report(mask, 0, MISTAKE), report(attention, 0)),
        result("Ed", *map(unanswered, NAMES)),
        result("Flo", reason="It cannot be read as a notebook."),
    ]
