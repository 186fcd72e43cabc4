"""What the curriculum promises of every notebook, and more of the first."""

from __future__ import annotations

from collections import Counter

import pytest

from lmcourse.course import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import global_names
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import all_exercises, exercises_of
from lmcourse.exercises.values import same, to_plain
from lmcourse.grading.examination.code_cells import compile_cell
from lmcourse.report import check_id
from tests.course.chapters import WRITTEN, source

EXERCISES = [pytest.param(exercise, id=name) for name, exercise in all_exercises().items()]
CODE = [
    pytest.param(exercise, id=name)
    for name, exercise in all_exercises().items()
    if not exercise.value
    and not exercise.view  # where a property of an answer is compared, it is asked for nothing else
]
EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)

AT_LEAST = {"exercises": 6, "points": 15, "misconceptions": 18}
FIRST_AT_LEAST = {"exercises": 8, "points": 20, "misconceptions": 30}


@EACH
def test_a_notebook_holds_enough(chapter: Chapter) -> None:
    exercises = exercises_of(chapter)
    found = {
        "exercises": len(exercises),
        "points": sum(exercise.points for exercise in exercises),
        "misconceptions": sum(len(exercise.misconceptions) for exercise in exercises),
    }
    wanted = FIRST_AT_LEAST if chapter.number == "01" else AT_LEAST
    assert {what: count for what, count in found.items() if count < wanted[what]} == {}


@EACH
def test_the_exercises_fit_into_the_time_of_the_notebook(chapter: Chapter) -> None:
    assert sum(exercise.minutes for exercise in exercises_of(chapter)) < chapter.minutes


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_exercise_knows_mistakes_and_gives_hints(exercise: Exercise) -> None:
    assert len(exercise.misconceptions) >= 3
    assert len(exercise.hints) >= 1
    for words in (exercise.hints, [wrong.sentence for wrong in exercise.misconceptions]):
        assert len(set(words)) == len(words)
        assert all(text.strip() == text and text[-1] in ".?!`" for text in words), words
    names = Counter(wrong.name for wrong in exercise.misconceptions)
    assert max(names.values()) == 1, names


@EACH
def test_what_printed_answers_call_of_earlier_ones_is_declared(chapter: Chapter) -> None:
    """So that a blank one does not cost the points of those after it (`Exercise.uses`)."""
    exercises = {exercise.name: exercise for exercise in exercises_of(chapter)}
    earlier: list[str] = []
    for cell in source(chapter).cells:
        if name := cell.options.get("exercise"):
            exercise = exercises[name]
            called = {*global_names(compile_cell(cell.text))} & {*earlier}
            assert called <= {*exercise.uses} <= {*earlier}
            assert not any(exercises[used].value for used in exercise.uses)
            assert not any(isinstance(exercises[used].reference, type) for used in exercise.uses)
            earlier.append(name)
    assert earlier == [*exercises]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_its_name_can_be_the_id_of_a_cell(exercise: Exercise) -> None:
    assert exercise.name.isidentifier()
    assert exercise.name.isascii()
    assert len(check_id(exercise.name)) <= 64


@pytest.mark.parametrize("exercise", EXERCISES)
def test_its_cases_are_plain_data_with_names_of_their_own(exercise: Exercise) -> None:
    names = [case.name for case in exercise.cases]
    assert len(set(names)) == len(names)
    for case in [*exercise.cases, *exercise.hidden(1)]:
        to_plain(case.args), to_plain(case.kwargs)
        assert case.name


@pytest.mark.parametrize("exercise", CODE)
def test_code_is_judged_by_hidden_cases_that_the_graders_seed_chooses(exercise: Exercise) -> None:
    def inputs(seed: int) -> list[object]:
        return [to_plain([case.name, case.args, dict(case.kwargs), case.script]) for case in exercise.hidden(seed)]

    assert exercise.hidden_cases is not None
    assert inputs(1)
    assert same(inputs(1), inputs(1)), "the same seed must ask the same"
    assert not same(inputs(1), inputs(2)), "another seed must ask something else: answers could be stored"


@pytest.mark.parametrize("exercise", CODE)
def test_hidden_values_are_asked_that_no_seed_changes(exercise: Exercise) -> None:
    """They decide; without them the public cases would, whose results can be stored."""
    fixed = [case for case in exercise.hidden(0) if not case.random]
    outcomes = [run_case(exercise.reference, case, name=exercise.name) for case in fixed]
    assert any(outcome.failure is None for outcome in outcomes)


@pytest.mark.parametrize("exercise", CODE)
def test_categories_do_not_depend_on_the_seed(exercise: Exercise) -> None:
    """The public report announces them."""
    assert {case.name for case in exercise.hidden(7)} == set(exercise.categories)
