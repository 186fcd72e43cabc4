"""The statistics of one assignment, put together for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lmcourse.grading.class_report.dropoff import DropOff, Mistake, dropoffs_in, mistakes_in, most_frequent_first
from lmcourse.grading.class_report.flags import FlaggedSubmission, flagged_submissions
from lmcourse.grading.class_report.likeness import AlikeAnswers, alike_answers_in
from lmcourse.grading.class_report.statistics import (
    ExerciseStatistics,
    Question,
    ScoreSummary,
    exercise_statistics,
    has_begun,
    is_graded,
    questions_of,
    status_of,
    summarize_scores,
    title_of,
)
from lmcourse.grading.regrade import RegradeRequest
from lmcourse.grading.result import SubmissionResult


@dataclass(frozen=True)
class Section:
    """The section of the report on one assignment.

    Attributes:
        assignment, title: its id, and what a reader calls it.
        results: its submissions, by the name of the student.
        questions: its exercises, in order.
        scores: their summary.
        exercises: how each exercise went.
        mistakes: what goes wrong, the most frequent first.
        began, finished: how many answered anything, and how many solved everything.
        dropoffs: where learners get no further.
        flagged, alike: what somebody should look at.
    """

    assignment: str
    title: str
    results: tuple[SubmissionResult, ...]
    questions: tuple[Question, ...]
    scores: ScoreSummary
    exercises: tuple[ExerciseStatistics, ...]
    mistakes: tuple[Mistake, ...]
    began: int
    finished: int
    dropoffs: tuple[DropOff, ...]
    flagged: tuple[FlaggedSubmission, ...]
    alike: tuple[AlikeAnswers, ...]

    @property
    def requests(self) -> list[tuple[str, RegradeRequest]]:
        """The requests to grade again in these submissions, whatever notebook they are about, with their authors."""
        return [(result.student, request) for result in self.results for request in result.requests]

    @property
    def late(self) -> list[SubmissionResult]:
        """The submissions that came late, or whose time is not believed."""
        return [result for result in self.results if str(result.late)]


def sections_of(
    results: Sequence[SubmissionResult], printed: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> list[Section]:
    """A section for each assignment that somebody handed in, in the order of the course; unrecognised work is last.

    Args:
        results: the submissions.
        printed: the printed solutions, by assignment and exercise.
    """
    ids = sorted({result.assignment for result in results}, key=lambda name: (not name, name))
    return [
        section_of(name, [result for result in results if result.assignment == name], printed.get(name, {}))
        for name in ids
    ]


def section_of(
    assignment: str, results: Sequence[SubmissionResult], printed: Mapping[str, str] = MappingProxyType({})
) -> Section:
    """The section on these submissions to one assignment, with the printed solutions by exercise."""
    ordered = tuple(sorted(results, key=lambda result: result.student.casefold()))
    graded = [result for result in ordered if is_graded(result)]
    questions = questions_of(assignment, graded)
    began = [result for result in graded if has_begun(result)]
    return Section(
        assignment,
        title_of(assignment),
        ordered,
        questions,
        summarize_scores(ordered),
        tuple(exercise_statistics(question, graded) for question in questions),
        most_frequent_first([mistake for question in questions for mistake in mistakes_in(question, graded)]),
        len(began),
        sum(all(status_of(result, question.name) == "solved" for question in questions) for result in began),
        dropoffs_in(questions, graded),
        flagged_submissions(ordered),
        alike_answers_in(assignment, questions, graded, printed),
    )
