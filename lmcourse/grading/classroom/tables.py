"""The tables of a report, one row for each thing that is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmcourse.grading.classroom.doubts import KINDS, SOURCES
from lmcourse.grading.classroom.record import Record
from lmcourse.grading.classroom.section import Section
from lmcourse.grading.classroom.spreadsheet import Cell, csv_text
from lmcourse.grading.classroom.stops import first_unsolved, gave_up

Row = list[Cell]


def tables(sections: Sequence[Section]) -> dict[str, str]:
    """CSV texts by the name of their file."""
    return {
        "exercises.csv": _exercises(sections),
        "students.csv": _students(sections),
        "misconceptions.csv": _misconceptions(sections),
        "evidence.csv": _evidence(sections),
    }


def _exercises(sections: Sequence[Section]) -> str:
    header = "assignment number exercise points graded solved partly wrong unanswered mean_share reached stopped gave_up"
    return csv_text([*header.split(), "hidden_checks_that_fail"], (row for one in sections for row in _by_exercise(one)))


def _by_exercise(section: Section) -> Iterator[Row]:
    for tally, stop in zip(section.tallies, section.stops, strict=True):
        question = tally.question
        failing = ", ".join(f"{one.category} ({one.answers})" for one in tally.failing)
        yield [
            *(section.assignment, question.number, question.name, question.points, section.glance.graded),
            *tally.counts.values(),
            *(round(tally.share, 4), stop.reached, len(stop.stopped), len(stop.gave_up), failing),
        ]


def _students(sections: Sequence[Section]) -> str:
    """Points by exercise are in columns of their own, empty for the exercises of other assignments."""
    exercises = list(dict.fromkeys(question.name for section in sections for question in section.questions))
    header = "assignment student score max_score graded stopped_at gave_up evidence same_answers reason"
    rows = (row for section in sections for row in _by_student(section, exercises))
    return csv_text([*header.split(), *exercises], rows)


def _by_student(section: Section, exercises: Sequence[str]) -> Iterator[Row]:
    groups = {twins.answers: twins.number for twins in section.twins}
    for record in section.records:
        stop = first_unsolved(record, section.questions)
        yield [
            *(section.assignment, record.student, record.score, record.max_score, _yes(record.graded)),
            *(stop.name if stop else "", _yes(gave_up(record, section.questions)), len(record.evidence)),
            *(groups.get(record.answers, ""), record.reason),
            *(_points(record, exercise) for exercise in exercises),
        ]


def _points(record: Record, exercise: str) -> Cell:
    return record.reports[exercise].points if exercise in record.reports else ""


def _misconceptions(sections: Sequence[Section]) -> str:
    """A row for each learner; `students` says how many rows there are with the same mistake."""
    rows: Iterator[Row] = (
        [
            *(section.assignment, mistake.question.number, mistake.question.name, _yes(mistake.known)),
            *(mistake.sentence, len(mistake.students), student),
        ]
        for section in sections
        for mistake in section.mistakes
        for student in mistake.students
    )
    return csv_text("assignment number exercise known sentence students student".split(), rows)


def _evidence(sections: Sequence[Section]) -> str:
    rows = (row for section in sections for row in _by_evidence(section))
    return csv_text("assignment student kind source what".split(), rows)


def _by_evidence(section: Section) -> Iterator[Row]:
    for doubt in section.doubts:
        for kind, group in doubt.found.items():
            yield from ([section.assignment, doubt.student, KINDS[kind], SOURCES[one.source], one.what] for one in group)
    for twins in section.twins:
        what = f"group {twins.number}: {len(twins.students)} learners have exactly these answers"
        yield from ([section.assignment, student, "The same answers", "compared", what] for student in twins.students)


def _yes(true: bool) -> str:
    return "yes" if true else "no"
