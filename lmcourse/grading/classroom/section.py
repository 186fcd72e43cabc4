"""Everything that is counted about one assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.classroom.doubts import Doubt, Twins, doubts_in, twins_in
from lmcourse.grading.classroom.glance import Glance, glance_at
from lmcourse.grading.classroom.mistakes import Mistake, mistakes_in, most_frequent_first
from lmcourse.grading.classroom.questions import Question, questions_of, title_of
from lmcourse.grading.classroom.record import Record
from lmcourse.grading.classroom.stops import Stop, stops_in
from lmcourse.grading.classroom.tallies import Tally, tally


@dataclass(frozen=True)
class Section:
    """One assignment.

    Attributes:
        assignment, title: its id, and what a reader calls it.
        records: its submissions, by the name of the student.
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
    records: tuple[Record, ...]
    questions: tuple[Question, ...]
    glance: Glance
    tallies: tuple[Tally, ...]
    mistakes: tuple[Mistake, ...]
    began: int
    finished: int
    stops: tuple[Stop, ...]
    doubts: tuple[Doubt, ...]
    twins: tuple[Twins, ...]


def sections_of(records: Sequence[Record]) -> list[Section]:
    """A section for each assignment that somebody handed in, in the order of the course; unrecognised work is last."""
    ids = sorted({record.assignment for record in records}, key=lambda name: (not name, name))
    return [section_of(name, [record for record in records if record.assignment == name]) for name in ids]


def section_of(assignment: str, records: Sequence[Record]) -> Section:
    """What is to be told of these submissions to one assignment."""
    ordered = tuple(sorted(records, key=lambda record: record.student.casefold()))
    graded = [record for record in ordered if record.graded]
    questions = questions_of(assignment, graded)
    began = [record for record in graded if record.began]
    return Section(
        assignment,
        title_of(assignment),
        ordered,
        questions,
        glance_at(ordered),
        tuple(tally(question, graded) for question in questions),
        most_frequent_first([mistake for question in questions for mistake in mistakes_in(question, graded)]),
        len(began),
        sum(all(record.standing(question.name) == "solved" for question in questions) for record in began),
        stops_in(questions, graded),
        doubts_in(ordered),
        twins_in(ordered),
    )
