"""What stands under the task of an exercise: the stub, staged hints, and an answer with the report of its check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmcourse.exercises.exercise import Exercise
from lmcourse.report.data import ReportData
from lmcourse.report.html import html, with_marks
from lmcourse.site.html import python

CARD_MARK = '<div class="exercise-tools">'
"""What the HTML of a card begins with; the page's tree is searched for it."""


def card(exercise: Exercise, stub: str, answer: str, report: ReportData) -> str:
    """The folded part of an exercise's card.

    Args:
        exercise: for its hints.
        stub: what a student starts from.
        answer: the printed solution, without its markers.
        report: what checking it gave, hidden cases included.
    """
    shown = html(public(report))
    return (
        f'{CARD_MARK}<p class="card-label">You start from</p>{python(stub)}{_hints(exercise.hints)}'
        f'<details class="answer"><summary>Show an answer, and what its check says</summary>'
        f"{python(answer)}{shown}</details></div>"
    )


def public(report: ReportData) -> ReportData:
    """Return the report of the notebook's own check, which counts the hidden cases: the card stays short."""
    cases = tuple(case for case in report.cases if not case.hidden)
    hidden = tuple(case.name for case in report.cases if case.hidden)
    return replace(report, hidden=False, cases=cases, to_come=(*report.to_come, *hidden))


def _hints(hints: Sequence[str]) -> str:
    """Each hint inside the one before it, so that they are opened one after the other."""
    nested = ""
    for number in range(len(hints), 0, -1):
        nested = (
            f'<details class="hint"><summary>Hint {number} of {len(hints)}</summary>'
            f"<p>{with_marks(hints[number - 1])}</p>{nested}</details>"
        )
    return nested
