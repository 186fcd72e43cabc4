"""Statistics of one assignment: exercises, the status of each learner in each, and scores."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lmcourse.course import CHAPTERS, Chapter
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import Report

Status = Literal["solved", "partly", "wrong", "unanswered"]
"""How a learner does in an exercise: all of its points, some, none, or no answer."""

MAX_BINS = 14
"""Of the histogram of scores."""


def is_graded(result: SubmissionResult) -> bool:
    """Whether its exercises could be judged."""
    return bool(result.reports)


def has_begun(result: SubmissionResult) -> bool:
    """Whether at least one exercise is answered."""
    return any(report.answered for report in result.reports.values())


def status_of(result: SubmissionResult, exercise: str) -> Status:
    """The status of an exercise: all points, some, none, or not answered. No report is no answer."""
    report = result.reports.get(exercise)
    if report is None or not report.answered:
        return "unanswered"
    if report.passed:
        return "solved"
    return "partly" if report.points > 0 else "wrong"


@dataclass(frozen=True)
class Question:
    """One exercise of an assignment.

    Attributes:
        number: its place in the notebook, from 1.
        name: its id.
        points: the most it can earn.
        sentences: what the course says of each misconception it knows.
        hint: the first nudge.
    """

    number: int
    name: str
    points: float
    sentences: tuple[str, ...] = ()
    hint: str = ""


def chapter_of(assignment: str) -> Chapter | None:
    """The chapter with this id, if the course has it."""
    return next((chapter for chapter in CHAPTERS if chapter.id == assignment), None)


def title_of(assignment: str) -> str:
    """The number and title of a chapter: "08 · Attention"."""
    chapter = chapter_of(assignment)
    return f"{chapter.number} · {chapter.title}" if chapter else assignment or "Not recognised"


def questions_of(assignment: str, results: Sequence[SubmissionResult]) -> tuple[Question, ...]:
    """The exercises on which somebody has a report: first those the course knows, in its order, then others."""
    from lmcourse.exercises.registry import exercises_of

    chapter = chapter_of(assignment)
    known = {exercise.name: exercise for exercise in exercises_of(chapter)} if chapter else {}
    points = {name: report.max_points for result in results for name, report in result.reports.items()}
    names = [name for name in known if name in points] + [name for name in points if name not in known]
    return tuple(
        Question(
            number,
            name,
            points[name],
            tuple(wrong.sentence for wrong in known[name].misconceptions) if name in known else (),
            next(iter(known[name].hints), "") if name in known else "",
        )
        for number, name in enumerate(names, 1)
    )


@dataclass(frozen=True)
class HistogramBin:
    """How many scores lie from `low` up to, but not at, `high`; the last bin of a histogram includes its `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class ScoreSummary:
    """The scores of a class, summarised. They are those of the graded submissions.

    Attributes:
        graded, unreadable: how many could be judged, and which could not.
        max_score: the most points.
        full: how many have all of them.
        quartiles: the scores below which a quarter, half and three quarters of the class lie (between two scores, in
            proportion); nothing if nobody was graded.
        histogram: how many scores lie in each range.
    """

    graded: int
    unreadable: tuple[SubmissionResult, ...]
    max_score: float
    full: int
    quartiles: tuple[float, float, float] | None
    histogram: tuple[HistogramBin, ...]

    @property
    def submissions(self) -> int:
        """How many submissions there are, graded or not."""
        return self.graded + len(self.unreadable)


def summarize_scores(results: Sequence[SubmissionResult]) -> ScoreSummary:
    """The scores of these submissions to one assignment."""
    scores = [result.score for result in results if is_graded(result)]
    highest = max((result.max_score for result in results), default=0.0)
    return ScoreSummary(
        graded=len(scores),
        unreadable=tuple(result for result in results if not is_graded(result)),
        max_score=highest,
        full=sum(result.score >= result.max_score for result in results if is_graded(result)),
        quartiles=_quartiles(scores),
        histogram=tuple(_histogram(scores, highest)),
    )


def _quartiles(scores: Sequence[float]) -> tuple[float, float, float] | None:
    if not scores:
        return None
    # Of a single score, `quantiles` would say nothing.
    lower, middle, upper = statistics.quantiles([*scores, *scores] if len(scores) == 1 else scores, method="inclusive")
    return lower, middle, upper


def _histogram(scores: Sequence[float], highest: float) -> Iterator[HistogramBin]:
    """Bins of one round width from 0 to `highest`; only the last may be narrower."""
    if not scores or highest <= 0:
        return
    step = _step(highest)
    last = -int(-highest // step) - 1
    places = [min(max(int(score // step), 0), last) for score in scores]
    for place in range(last + 1):
        yield HistogramBin(place * step, min((place + 1) * step, highest), places.count(place))


def _step(highest: float) -> float:
    """The smallest of 0.5, 1, 2, 5, 10, 20, 50 … that needs at most `MAX_BINS` bins."""
    step = 0.5
    while highest / step > MAX_BINS:
        leading = f"{step:e}"[0]
        step *= 2.5 if leading == "2" else 2
    return step


@dataclass(frozen=True)
class FailedCategory:
    """One category of hidden cases, and how many answers fail at least one of its cases."""

    category: str
    answers: int


@dataclass(frozen=True)
class ExerciseStatistics:
    """Counts of outcomes, mistakes and failed categories of one exercise.

    Attributes:
        question: which.
        counts: how many submissions solve it, earn some points, none, or leave it unanswered.
        answered: how many answer it.
        share: mean share of its points, from 0 to 1; unanswered counts as 0.
        failed_categories: those of hidden cases that somebody fails, those most failed first.
    """

    question: Question
    counts: dict[Status, int]
    answered: int
    share: float
    failed_categories: tuple[FailedCategory, ...]


def exercise_statistics(question: Question, results: Sequence[SubmissionResult]) -> ExerciseStatistics:
    """How these submissions, all of them graded, did in one exercise."""
    name = question.name
    statuses = [status_of(result, name) for result in results]
    reports = [result.reports[name] for result in results if status_of(result, name) != "unanswered"]
    return ExerciseStatistics(
        question,
        {status: statuses.count(status) for status in get_args(Status)},
        len(reports),
        sum(report.points / report.max_points for report in reports) / len(results),
        _count_failed_categories(reports),
    )


def _count_failed_categories(reports: Sequence[Report]) -> tuple[FailedCategory, ...]:
    found = Counter(category for report in reports for category in _failed_categories(report))
    return tuple(FailedCategory(category, count) for category, count in found.most_common())


def _failed_categories(report: Report) -> list[str]:
    return list(dict.fromkeys(case.name for case in report.cases if case.hidden and not case.passed))
