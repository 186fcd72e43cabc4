"""The tables of a report, one row for each thing that is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmcourse.grading.classroom.doubts import KINDS, SOURCES
from lmcourse.grading.classroom.section import Section
from lmcourse.grading.classroom.spreadsheet import Cell, csv_text
from lmcourse.grading.classroom.standing import is_graded
from lmcourse.grading.classroom.stops import first_unsolved, gave_up
from lmcourse.grading.result import Result

Row = Sequence[Cell]

EXERCISES = (
    *("assignment", "number", "exercise", "points", "graded", "solved", "partly", "wrong", "unanswered"),
    *("mean_share", "reached", "stopped", "gave_up", "hidden_checks_that_fail"),
)
STUDENTS = (
    *("assignment", "student", "score", "max_score", "graded", "stopped_at", "gave_up", "evidence"),
    *("same_answers", "reason"),
)
MISCONCEPTIONS = ("assignment", "number", "exercise", "known", "sentence", "learners", "student")
EVIDENCE = ("assignment", "student", "kind", "source", "what")


def tables(sections: Sequence[Section]) -> dict[str, str]:
    """CSV texts by the name of their file.

    `exercises.csv` has a row for each exercise and `students.csv` one for each submission, with its points by exercise
    (empty for the exercises of other assignments). `misconceptions.csv` has a row for each learner with a mistake and
    `evidence.csv` one for each piece.
    """
    exercises = list(dict.fromkeys(question.name for section in sections for question in section.questions))
    return {
        "exercises.csv": csv_text(EXERCISES, (row for one in sections for row in _by_exercise(one))),
        "students.csv": csv_text(
            (*STUDENTS, *exercises), (row for one in sections for row in _by_student(one, exercises))
        ),
        "misconceptions.csv": csv_text(MISCONCEPTIONS, (row for one in sections for row in _by_mistake(one))),
        "evidence.csv": csv_text(EVIDENCE, (row for one in sections for row in _by_evidence(one))),
    }


def _by_exercise(section: Section) -> Iterator[Row]:
    for tally, stop in zip(section.tallies, section.stops, strict=True):
        question = tally.question
        failing = ", ".join(f"{one.category} ({one.answers})" for one in tally.failing)
        yield [
            *(section.assignment, question.number, question.name, question.points, section.glance.graded),
            *tally.counts.values(),
            *(round(tally.share, 4), stop.reached, len(stop.stopped), len(stop.gave_up), failing),
        ]


def _by_student(section: Section, exercises: Sequence[str]) -> Iterator[Row]:
    groups = {twins.answers: twins.number for twins in section.twins}
    for result in section.results:
        stop = first_unsolved(result, section.questions)
        yield [
            *(section.assignment, result.student, result.score, result.max_score, _yes(is_graded(result))),
            *(stop.name if stop else "", _yes(gave_up(result, section.questions)), len(result.evidence)),
            *(groups.get(result.answers, ""), result.reason),
            *(_points(result, exercise) for exercise in exercises),
        ]


def _points(result: Result, exercise: str) -> Cell:
    return result.reports[exercise].points if exercise in result.reports else ""


def _by_mistake(section: Section) -> Iterator[Row]:
    for mistake in section.mistakes:
        question = mistake.question
        what = (section.assignment, question.number, question.name, _yes(mistake.known), mistake.sentence)
        yield from ((*what, len(mistake.students), student) for student in mistake.students)


def _by_evidence(section: Section) -> Iterator[Row]:
    for doubt in section.doubts:
        for kind, group in doubt.found.items():
            for one in group:
                yield section.assignment, doubt.student, KINDS[kind], SOURCES[one.source], one.what
    for twins in section.twins:
        what = f"group {twins.number}: {len(twins.students)} learners have exactly these answers"
        yield from ((section.assignment, student, "The same answers", "compared", what) for student in twins.students)


def _yes(true: bool) -> str:
    return "yes" if true else "no"
