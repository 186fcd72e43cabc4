"""Every notebook fulfils the promises of the curriculum."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from torch import Tensor

from lmcourse.course.chapters import Chapter
from lmcourse.course.parts import minutes_in
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import global_names
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import all_exercises, exercises_of
from lmcourse.exercises.values import to_plain
from lmcourse.report import check_id
from tests.course.chapters import EACH, ROOT, WRITTEN, source

AT_LEAST = {"exercises": 6, "points": 15, "misconceptions": 18}
FIRST_AT_LEAST = {"exercises": 8, "points": 20, "misconceptions": 30}


@EACH
def test_a_notebook_has_enough_exercises_points_and_mistakes(chapter: Chapter) -> None:
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
    assert sum(exercise.minutes for exercise in exercises_of(chapter)) < sum(minutes_in(source(chapter).cells[0].text))


def broken_promises(exercise: Exercise) -> Iterator[str]:
    """Return one sentence for each broken promise of an exercise."""
    if len(exercise.misconceptions) < 3 or not exercise.hints:
        yield "fewer than three misconceptions, or no hint"
    words = [*exercise.hints, *(wrong.sentence for wrong in exercise.misconceptions)]
    yield from (f"no sentence: {text!r}" for text in words if text.strip() != text or text[-1] not in ".?!`")
    for kind, names in (
        ("misconceptions", [wrong.name for wrong in exercise.misconceptions]),
        ("public cases", [case.name for case in exercise.cases]),
    ):
        if len(set(names)) < len(names):
            yield f"two {kind} of one name"
    if not (exercise.name.isidentifier() and exercise.name.isascii() and len(check_id(exercise.name)) <= 64):
        yield "its name cannot be the id of a cell"
    for case in [*exercise.cases, *exercise.hidden]:
        to_plain(case.args), to_plain(case.kwargs)  # raises an error for values that are not plain data
        if not case.name:
            yield "a case without a name"
    # If a view compares a property, the exercise must not ask for anything else. An open task asks for a measurement.
    if not (exercise.value or exercise.view or exercise.task):
        outcomes = (run_case(exercise.reference, case, name=exercise.name) for case in exercise.hidden)
        if all(outcome.failure for outcome in outcomes):
            yield "no hidden case asks for a value"


@EACH
def test_exercises_match_the_curriculum(chapter: Chapter) -> None:
    found = [f"{exercise.name}: {what}" for exercise in exercises_of(chapter) for what in broken_promises(exercise)]
    assert found == []


@EACH
def test_calls_of_earlier_answers_are_declared(chapter: Chapter) -> None:
    """Then a blank answer does not affect the points of later answers (`Exercise.uses`)."""
    exercises = {exercise.name: exercise for exercise in exercises_of(chapter)}
    earlier: list[str] = []
    for cell in source(chapter).cells:
        if name := cell.options.get("exercise"):
            exercise = exercises[name]
            called = {*global_names(compile(cell.text, "<cell>", "exec", dont_inherit=True))} & {*earlier}
            assert called <= {*exercise.uses} <= {*earlier}
            assert not any(exercises[used].value for used in exercise.uses)
            earlier.append(name)
    assert earlier == [*exercises]


def hidden_inputs() -> str:
    """Return a fingerprint of all hidden cases."""
    found = [
        (name, case.name, _spelled(case.args), _spelled(dict(case.kwargs)), case.script)
        for name, exercise in all_exercises().items()
        for case in exercise.hidden
    ]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _spelled(value: object) -> object:
    """Return the value with tensors as lists of all their numbers."""
    if isinstance(value, Tensor):
        return [str(value.dtype), [*value.shape], value.requires_grad, value.tolist()]
    if isinstance(value, dict):
        return {name: _spelled(item) for name, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.prove
def test_hidden_cases_are_the_same_in_every_process() -> None:
    """A mark depends only on the answer, not on the order of sets or on earlier random numbers."""
    program = "from tests.course.test_promises import hidden_inputs; print(hidden_inputs())"
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300, check=True
    )
    assert run.stdout.strip() == hidden_inputs()


def test_no_two_predictions_have_the_same_name() -> None:
    modules = (importlib.import_module(chapter.module) for chapter in WRITTEN)
    names = [prediction.name for module in modules for prediction in module.PREDICTIONS]
    assert sorted(names) == sorted({*names})
