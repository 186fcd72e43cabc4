"""Results of learners who do not exist, in three exercises that do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from lmcourse.exercises.registry import find_exercise
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import CaseResult, Report

CHAPTER = "08-attention"
NAMES = ("attention_weights", "causal_mask", "causal_attention")
"""Of 2, 2 and 3 points; in the notebook they follow each other in this order."""

UPSIDE_DOWN = find_exercise("causal_mask").misconceptions[0].sentence
"""A misconception that the course knows."""

NO_RETURN = "Your function returns None: is there a `return` at the end?"
"""A diagnosis that fits any exercise."""


@cache
def categories(name: str) -> tuple[str, ...]:
    """The categories of hidden cases of an exercise."""
    return tuple(find_exercise(name).categories)


def report(name: str, points: float, failing: Sequence[str] = (), diagnosis: str = "", answered: bool = True) -> Report:
    """A report with two hidden cases of each category, of which the second fails for the categories in `failing`."""
    exercise = find_exercise(name)
    cases = [CaseResult("a public case", points > 0)]
    for category in categories(name):
        right = answered and category not in failing
        cases += [CaseResult(category, answered, hidden=True), CaseResult(category, right, hidden=True)]
    return Report(name, points, exercise.points, True, tuple(cases), diagnosis, answered=answered)


def solved(name: str) -> Report:
    """All points."""
    return report(name, find_exercise(name).points)


def unanswered(name: str) -> Report:
    """As it was handed out."""
    return report(name, 0.0, answered=False, diagnosis="Nothing here yet.")


def result(student: str, *reports: Report, **rest: Any) -> SubmissionResult:
    """What grading gives for a learner who got these reports."""
    got = {one.exercise: one for one in reports}
    most = sum(find_exercise(name).points for name in NAMES)
    return SubmissionResult(student, CHAPTER, sum(one.points for one in reports), most, reports=got, **rest)


def small_class() -> list[SubmissionResult]:
    """Six learners whose numbers can be counted by hand."""
    weights, mask, attention = NAMES
    none = report(attention, 0, ["other shapes"], NO_RETURN)
    return [
        result("Ada", *map(solved, NAMES)),
        result("Bo", solved(weights), report(mask, 1, ["other lengths"], UPSIDE_DOWN), unanswered(attention)),
        result("Cy", report(weights, 0, ["other shapes"]), solved(mask), solved(attention)),
        result("Di", solved(weights), report(mask, 0, ["one query", "other lengths"], UPSIDE_DOWN), none),
        result("Ed", *map(unanswered, NAMES)),
        result("Flo", reason="It cannot be read as a notebook."),
    ]


def long_answer(number: int = 0) -> str:
    """An answer of more than two lines; answers of different numbers are not alike."""
    calls = "".join(f".f{number}_{step}({number}, {step})" for step in range(30))
    return f"def {NAMES[0]}(q, k):\n    return q{calls}\n"


ALIKE = {NAMES[0]: long_answer()}
"""The answers of somebody who answered the first exercise as others did."""
