"""Everything that is counted about one assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.doubts import Doubt, Twins, doubts_in, twins_in
from lmcourse.grading.classroom.glance import Glance, glance_at
from lmcourse.grading.classroom.mistakes import Mistake, mistakes_in, most_frequent_first
from lmcourse.grading.classroom.questions import Question, questions_of, title_of
from lmcourse.grading.classroom.standing import has_begun, is_graded, standing_of
from lmcourse.grading.classroom.stops import Stop, stops_in
from lmcourse.grading.classroom.tallies import Tally, tally
from lmcourse.grading.result import Result


@dataclass(frozen=True)
class Section:
    """One assignment.

    Attributes:
        assignment, title: its id, and what a reader calls it.
        results: its submissions, by the name of the student.
        questions: its exercises, in order.
        glance: the scores.
        tallies: how each exercise went.
        mistakes: what goes wrong, the most frequent first.
        began, finished: how many answered anything, and how many solved everything.
        stops: where learners get no further.
        doubts, twins: what somebody should look at.
    """

    assignment: str
    title: str
    results: tuple[Result, ...]
    questions: tuple[Question, ...]
    glance: Glance
    tallies: tuple[Tally, ...]
    mistakes: tuple[Mistake, ...]
    began: int
    finished: int
    stops: tuple[Stop, ...]
    doubts: tuple[Doubt, ...]
    twins: tuple[Twins, ...]


def sections_of(results: Sequence[Result]) -> list[Section]:
    """A section for each assignment that somebody handed in, in the order of the course; unrecognised work is last."""
    ids = sorted({result.assignment for result in results}, key=lambda name: (not name, name))
    return [section_of(name, [result for result in results if result.assignment == name]) for name in ids]


def section_of(assignment: str, results: Sequence[Result]) -> Section:
    """What is to be told of these submissions to one assignment."""
    ordered = tuple(sorted(results, key=lambda result: result.student.casefold()))
    graded = [result for result in ordered if is_graded(result)]
    questions = questions_of(assignment, graded)
    began = [result for result in graded if has_begun(result)]
    return Section(
        assignment,
        title_of(assignment),
        ordered,
        questions,
        glance_at(ordered),
        tuple(tally(question, graded) for question in questions),
        most_frequent_first([mistake for question in questions for mistake in mistakes_in(question, graded)]),
        len(began),
        sum(all(standing_of(result, question.name) == "solved" for question in questions) for result in began),
        stops_in(questions, graded),
        doubts_in(ordered),
        twins_in(ordered),
    )
