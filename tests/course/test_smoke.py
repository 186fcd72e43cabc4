"""Test the known answers of each notebook once. `test_checks` adds open tasks, mutants, variants and constants."""

from __future__ import annotations

import pytest

from lmcourse.check_tests.answers import answer_cells
from lmcourse.check_tests.prove import prove
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_known_answers_earn_their_points_and_mistakes_are_named(chapter: Chapter) -> None:
    [cells] = answer_cells([chapter], ROOT).values()
    found = prove({chapter: [cell for cell in cells if not cell.exercise.task]}, quick=True)
    exercises = [exercise for exercise in exercises_of(chapter) if not exercise.task]
    assert found.exercises == len(exercises)
    assert found.not_full == found.not_zero == ()
    assert [row for row in found.rows if not (row.killed and row.named)] == []
    assert [(row.exercise, row.misconception) for row in found.rows] == [
        (exercise.name, wrong.name) for exercise in exercises for wrong in exercise.misconceptions
    ]
