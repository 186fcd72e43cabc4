"""The scores of a class: how many, how high, how they spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.standing import is_graded
from lmcourse.grading.result import Result

MOST_COLUMNS = 14


@dataclass(frozen=True)
class Column:
    """How many scores lie from `low` up to, but not at, `high`; the last column of a histogram includes its `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Glance:
    """The class at a glance. Scores are those of the graded submissions.

    Attributes:
        graded, unreadable: how many could be judged, and which could not.
        max_score: the most points.
        full: how many have all of them.
        quartiles: the scores below which a quarter, half and three quarters of the class lie (between two scores, in
            proportion); nothing if nobody was graded.
        columns: the histogram.
    """

    graded: int
    unreadable: tuple[Result, ...]
    max_score: float
    full: int
    quartiles: tuple[float, float, float] | None
    columns: tuple[Column, ...]

    @property
    def submissions(self) -> int:
        """All of them."""
        return self.graded + len(self.unreadable)


def glance_at(results: Sequence[Result]) -> Glance:
    """The scores of these submissions to one assignment."""
    scores = [result.score for result in results if is_graded(result)]
    highest = max((result.max_score for result in results), default=0.0)
    return Glance(
        graded=len(scores),
        unreadable=tuple(result for result in results if not is_graded(result)),
        max_score=highest,
        full=sum(result.score >= result.max_score for result in results if is_graded(result)),
        quartiles=_quartiles(scores),
        columns=tuple(_columns(scores, highest)),
    )


def _quartiles(scores: Sequence[float]) -> tuple[float, float, float] | None:
    if not scores:
        return None
    # Of a single score, `quantiles` would say nothing.
    lower, middle, upper = statistics.quantiles([*scores, *scores] if len(scores) == 1 else scores, method="inclusive")
    return lower, middle, upper


def _columns(scores: Sequence[float], highest: float) -> Iterator[Column]:
    """Columns of one round width from 0 to `highest`; only the last may be narrower."""
    if not scores or highest <= 0:
        return
    step = _step(highest)
    last = -int(-highest // step) - 1
    places = [min(max(int(score // step), 0), last) for score in scores]
    for place in range(last + 1):
        yield Column(place * step, min((place + 1) * step, highest), places.count(place))


def _step(highest: float) -> float:
    """The smallest of 0.5, 1, 2, 5, 10, 20, 50 … that needs at most `MOST_COLUMNS` columns."""
    step = 0.5
    while highest / step > MOST_COLUMNS:
        leading = f"{step:e}"[0]
        step *= 2.5 if leading == "2" else 2
    return step
