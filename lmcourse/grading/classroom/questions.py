"""What an assignment asked, in the notebook's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.course import CHAPTERS, Chapter
from lmcourse.grading.result import Result


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
    """What a reader calls it: "08 · Attention"."""
    chapter = chapter_of(assignment)
    return f"{chapter.number} · {chapter.title}" if chapter else assignment or "Not recognised"


def questions_of(assignment: str, results: Sequence[Result]) -> tuple[Question, ...]:
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
