"""The course's own notebooks number their exercises, and their sources have the right totals."""

from __future__ import annotations

import re

import pytest

from lmcourse.authoring.folders import TOTALS
from lmcourse.authoring.problems import HEADING, exercises_in, with_totals
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import WRITTEN, prose, source

EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)


@EACH
def test_every_exercise_has_a_cell_and_a_numbered_heading(chapter: Chapter) -> None:
    exercises = exercises_in(source(chapter), chapter)
    assert exercises == [*exercises_of(chapter)]
    assert HEADING.findall(prose(chapter)) == [exercise.summary for exercise in exercises]
    numbers = re.findall(r"^### Exercise (\d+) · ", prose(chapter), re.M)
    assert numbers == [str(number) for number in range(1, len(exercises) + 1)]


@EACH
def test_the_totals_in_the_source_are_right(chapter: Chapter) -> None:
    first = source(chapter).cells[0]
    written = TOTALS.search(first.text)
    assert written
    assert int(written[1]) == chapter.minutes
    assert with_totals(source(chapter), exercises_of(chapter)).cells[0] == first
