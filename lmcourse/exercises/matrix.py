"""The proof that the tests have teeth: exercise × misconception.

Every misconception of every exercise is submitted as if a learner had written it. It must lose points in the grade and
be named by its own sentence. A table of all of them is what `lmcourse matrix` prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmcourse.course import Chapter
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.registry import exercises_of


@dataclass(frozen=True)
class Row:
    """One misconception: what it earned in public and in the grade, and whether each run named it."""

    chapter: str
    exercise: str
    misconception: str
    max_points: int
    public_points: float
    hidden_points: float
    named_public: bool
    named_hidden: bool

    @property
    def killed(self) -> bool:
        """It lost points in the grade."""
        return self.hidden_points < self.max_points

    @property
    def named(self) -> bool:
        """The grade's report, and the public one if it failed there, says what the mistake is."""
        return self.named_hidden and (self.named_public or self.public_points == self.max_points)


@dataclass(frozen=True)
class Matrix:
    """All rows, and whether each reference earns everything and each untouched stub nothing, in both runs."""

    exercises: int
    rows: tuple[Row, ...]
    not_full: tuple[str, ...]
    not_zero: tuple[str, ...]

    @property
    def proved(self) -> bool:
        """Whether every line of the proof holds."""
        return all(row.killed and row.named for row in self.rows) and not self.not_full and not self.not_zero

    def to_json(self) -> dict[str, Any]:
        """The proof as plain data."""
        return {
            "exercises": self.exercises,
            "misconceptions": len(self.rows),
            "killed": sum(row.killed for row in self.rows),
            "named": sum(row.named for row in self.rows),
            "solutions_full": not self.not_full,
            "stubs_zero": not self.not_zero,
            "rows": [asdict(row) | {"killed": row.killed, "named": row.named} for row in self.rows],
        }


def prove(chapters: Sequence[Chapter], solutions: dict[str, Any], stubs: dict[str, Any]) -> Matrix:
    """Submit every misconception, printed solution and stub of these chapters.

    Args:
        chapters: what to prove.
        solutions: by exercise name, the answer printed in the solution notebook.
        stubs: by exercise name, the answer a student copy starts with.
    """
    rows: list[Row] = []
    not_full: list[str] = []
    not_zero: list[str] = []
    pairs = [(chapter, exercise) for chapter in chapters for exercise in exercises_of(chapter)]
    for chapter, exercise in pairs:
        rows += [_row(chapter, exercise, wrong) for wrong in exercise.misconceptions]
        if _points(exercise, solutions[exercise.name]) != {exercise.points}:
            not_full.append(exercise.name)
        if _points(exercise, stubs[exercise.name]) != {0.0}:
            not_zero.append(exercise.name)
    return Matrix(len(pairs), tuple(rows), tuple(not_full), tuple(not_zero))


def _points(exercise: Exercise, answer: Any) -> set[float]:
    return {check_exercise(exercise, answer, hidden=hidden).points for hidden in (False, True)}


def _row(chapter: Chapter, exercise: Exercise, wrong: Misconception) -> Row:
    public = check_exercise(exercise, wrong.answer, enforce=False)
    graded = check_exercise(exercise, wrong.answer, hidden=True, enforce=False)
    return Row(
        chapter.id,
        exercise.name,
        wrong.name,
        exercise.points,
        public.points,
        graded.points,
        public.diagnosis == wrong.sentence,
        graded.diagnosis == wrong.sentence,
    )
