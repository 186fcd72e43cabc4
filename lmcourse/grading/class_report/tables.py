"""The tables of a class report, as CSV that any spreadsheet reads and none of them runs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from lmcourse.grading.class_report.dropoff import first_unsolved, gave_up
from lmcourse.grading.class_report.flags import KIND_LABELS, SOURCE_LABELS
from lmcourse.grading.class_report.likeness import PRINTED
from lmcourse.grading.class_report.section import Section
from lmcourse.grading.class_report.statistics import is_graded
from lmcourse.grading.result import SubmissionResult
from lmcourse.text import collapse_whitespace, replace_surrogates

Cell = str | int | float

Row = Sequence[Cell]

EXERCISES = (
    *("assignment", "number", "exercise", "points", "graded", "solved", "partly", "wrong", "unanswered"),
    *("mean_share", "reached", "stopped", "gave_up", "hidden_checks_that_fail"),
)
STUDENTS = (
    *("assignment", "student", "score", "max_score", "late_seconds", "late_penalty", "graded", "stopped_at"),
    *("gave_up", "evidence", "alike_answers", "regrade_requests", "reason"),
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
    for exercise, dropoff in zip(section.exercises, section.dropoffs, strict=True):
        question = exercise.question
        failing = ", ".join(f"{one.category} ({one.answers})" for one in exercise.failed_categories)
        yield [
            *(section.assignment, question.number, question.name, question.points, section.scores.graded),
            *exercise.counts.values(),
            *(round(exercise.share, 4), dropoff.reached, len(dropoff.stopped), len(dropoff.gave_up), failing),
        ]


def _by_student(section: Section, exercises: Sequence[str]) -> Iterator[Row]:
    for result in section.results:
        stop = first_unsolved(result, section.questions)
        yield [
            *(section.assignment, result.student, result.score, result.max_score),
            *(result.late.seconds, result.late.penalty, _yes(is_graded(result))),
            *(stop.name if stop else "", _yes(gave_up(result, section.questions)), len(result.evidence)),
            _alike(result, section),
            "; ".join(f"{one.assignment} {one.exercise}: {one.reason}" for one in result.requests),
            result.reason,
            *(_points(result, exercise) for exercise in exercises),
        ]


def _points(result: SubmissionResult, exercise: str) -> Cell:
    return result.reports[exercise].points if exercise in result.reports else ""


def _alike(result: SubmissionResult, section: Section) -> str:
    """The numbers of the groups of alike answers that somebody is in."""
    return ", ".join(str(group.number) for group in section.alike if result.student in group.students)


def _by_mistake(section: Section) -> Iterator[Row]:
    for mistake in section.mistakes:
        question = mistake.question
        what = (section.assignment, question.number, question.name, _yes(mistake.known), mistake.sentence)
        yield from ((*what, len(mistake.students), student) for student in mistake.students)


def _by_evidence(section: Section) -> Iterator[Row]:
    for flagged in section.flagged:
        for kind, group in flagged.found.items():
            for one in group:
                yield section.assignment, flagged.student, KIND_LABELS[kind], SOURCE_LABELS[one.source], one.what
    for alike in section.alike:
        for student in alike.students:
            if student != PRINTED:
                yield section.assignment, student, "Alike answers", "compared", alike.what(student)


def _yes(true: bool) -> str:
    return "yes" if true else "no"


# Excel and LibreOffice calculate a cell that begins so, the full-width forms too (OWASP, "CSV Injection"). Where people
# write 0,5 for a half, a semicolon begins a new cell, and quotation marks hide it only at the start of a line.
_FORMULA = re.compile(r"(^|;)(\s*)(?=[=+\-@＝＋－＠])")


def without_formulas(text: str) -> str:
    """The text in one line, with an apostrophe before whatever a spreadsheet would take for a formula."""
    return _FORMULA.sub(r"\1\2'", collapse_whitespace(replace_surrogates(text)))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table after RFC 4180. Numbers stay numbers; every text is quoted, and none is a formula."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([without_formulas(name) for name in header])
    writer.writerows(
        [without_formulas(cell) if isinstance(cell, str) else _whole_if_possible(cell) for cell in row] for row in rows
    )
    return buffer.getvalue()


def _whole_if_possible(number: int | float) -> int | float:
    """The number 2.0 as 2: the points of one column look alike, wherever they come from."""
    return int(number) if number == int(number) else number
