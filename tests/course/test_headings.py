"""The course's own notebooks have all exercises, each with a heading. `build --check` compares numbers and totals."""

from __future__ import annotations

from lmcourse.authoring.numbering import exercises_in, headings, numbers_of, references
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import EACH, source


@EACH
def test_every_exercise_has_a_cell_and_a_heading(chapter: Chapter) -> None:
    exercises = exercises_in(source(chapter), chapter)
    assert exercises == [*exercises_of(chapter)]
    assert [heading.name for heading in headings(source(chapter))] == [exercise.name for exercise in exercises]


@EACH
def test_every_exercise_that_the_text_refers_to_exists(chapter: Chapter) -> None:
    numbers = {number for reference in references(source(chapter).text) for number in numbers_of(reference)}
    assert numbers <= {*range(1, len(exercises_of(chapter)) + 1)}
