"""The proof proves: it fails when a test of an exercise has no teeth."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from lmcourse.course import Chapter, available_chapters
from lmcourse.errors import CourseError
from lmcourse.exercises import Exercise, check_exercise, matrix, registry
from lmcourse.exercises.checking import SEED
from lmcourse.exercises.prediction import predict
from lmcourse.exercises.registry import all_exercises, exercises_of, find_exercise
from tests.exercises.toy import doubling

CHAPTER = Chapter("99-toy", "Toy", 1, "0")
ALL = list(all_exercises().values())


def right(x: Tensor) -> Tensor:
    return x + x


def stub(x: Tensor) -> Tensor:
    raise NotImplementedError


def prove(
    monkeypatch: pytest.MonkeyPatch, exercise: Exercise, solution: Any = right, start: Any = stub
) -> matrix.Matrix:
    monkeypatch.setattr(matrix, "exercises_of", lambda chapter: (exercise,))
    return matrix.prove([CHAPTER], {"double": solution}, {"double": start})


def test_an_exercise_in_order_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, doubling())
    assert proof.proved
    told = proof.to_json()
    rows = told.pop("rows")
    assert told == {
        "exercises": 1,
        "misconceptions": 2,
        "killed": 2,
        "named": 2,
        "solutions_full": True,
        "stubs_zero": True,
    }
    assert [row["misconception"] for row in rows] == ["squared", "absolute"]


def test_a_misconception_that_passes_breaks_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = doubling()
    exercise.misconception("Not wrong at all.")(right)
    proof = prove(monkeypatch, exercise)
    assert not proof.proved
    assert proof.to_json()["killed"] == 2


def test_a_misconception_that_goes_by_anothers_name_breaks_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = doubling()

    @exercise.misconception("Squared too, in other words.")
    def power(x: Tensor) -> Tensor:
        return x**2

    proof = prove(monkeypatch, exercise)
    assert not proof.proved
    assert (proof.to_json()["killed"], proof.to_json()["named"]) == (3, 2)


def test_a_misconception_that_only_the_grade_can_name_breaks_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = doubling()

    @exercise.misconception("You square, but short tensors only.")
    def squared_when_short(x: Tensor) -> Tensor:
        return x * x if len(x) < 3 else 3 * x

    proof = prove(monkeypatch, exercise)
    row = proof.rows[-1]
    assert (row.killed, row.named_hidden, row.named_public, row.named) == (True, True, False, False)
    assert not proof.proved


def test_a_solution_that_loses_points_breaks_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_when_long(x: Tensor) -> Tensor:
        return 2 * x if len(x) < 5 else x

    proof = prove(monkeypatch, doubling(), solution=wrong_when_long)
    assert not proof.proved
    assert proof.not_full == ("double",)


def test_a_stub_that_earns_points_breaks_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove(monkeypatch, doubling(), start=right)
    assert not proof.proved
    assert proof.not_zero == ("double",)


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_proof_holds_for_other_hidden_cases(exercise: Exercise, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED, str(seed))
    assert check_exercise(exercise, exercise.reference, hidden=True, enforce=False).passed
    for wrong in exercise.misconceptions:
        report = check_exercise(exercise, wrong.answer, hidden=True, enforce=False)
        assert report.points < exercise.points, wrong.name
        assert report.diagnosis == wrong.sentence, wrong.name


def test_exercises_are_found_by_name_and_chapter() -> None:
    chapter = available_chapters()[0]
    assert find_exercise("ulp") in exercises_of(chapter)
    assert exercises_of(Chapter("98-planned", "Planned", 1, "0")) == ()
    with pytest.raises(CourseError, match="Did you mean `ulp`"):
        find_exercise("ulq")


def test_two_exercises_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "exercises_of", lambda chapter: (doubling(), doubling()))
    with pytest.raises(CourseError, match="Two exercises are called 'double'"):
        registry.all_exercises.__wrapped__()


@pytest.mark.parametrize("changes", [{"points": 0}, {"difficulty": 4}, {"cases": []}])
def test_an_exercise_without_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="double: an exercise has points"):
        doubling(**changes)


def test_a_prediction_says_whether_and_why() -> None:
    question = predict("numbers_per_binade")
    wrong = next(button for button in question.buttons if button.description == "256")
    wrong.click()
    assert "It is 128." in question.verdict.value
    assert "twice the length" in question.verdict.value
    assert all(button.disabled for button in question.buttons)
    again = predict("numbers_per_binade")
    next(button for button in again.buttons if button.description == "128").click()
    assert "Yes." in again.verdict.value
    with pytest.raises(CourseError, match="no prediction called"):
        predict("nothing")
