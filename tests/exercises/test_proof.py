"""The proof proves: it fails when a test of an exercise has no teeth."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from lmcourse.course import Chapter, available_chapters
from lmcourse.errors import CourseError
from lmcourse.exercises import Exercise, matrix, registry
from lmcourse.exercises.prediction import predict
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.exercises.values import same
from tests.exercises.toy import doubling

CHAPTER = Chapter("99-toy", "Toy", 1, "0")
PUBLIC = [case.args[0] for case in doubling().cases]


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
    assert (row.killed, row.diagnosed_in_grade, row.diagnosed_in_public, row.named) == (True, True, False, False)
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


@pytest.mark.parametrize("seed", matrix.SEEDS)
def test_a_misconception_that_one_seed_lets_pass_breaks_the_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = doubling()
    spared = [case.args[0] for case in exercise.hidden(seed)]

    @exercise.misconception("You triple, but not what this seed asks.")
    def tripled(x: Tensor) -> Tensor:
        return 2 * x if any(same(x, other) for other in [*PUBLIC, *spared]) else 3 * x

    [row] = prove(monkeypatch, exercise).rows[2:]
    assert not row.killed


@pytest.mark.parametrize("seed", [0, 3, matrix.SOLUTION_SEEDS[-1]])
def test_a_solution_that_fails_under_one_seed_breaks_the_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [case.args[0] for case in doubling().hidden(seed)]

    def unlucky(x: Tensor) -> Tensor:
        return x if any(same(x, other) for other in asked) else 2 * x

    assert prove(monkeypatch, doubling(), solution=unlucky).not_full == ("double",)


def test_each_answer_runs_once_on_each_case(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = doubling()
    calls: list[Tensor] = []

    @exercise.misconception("You triple.")
    def tripled(x: Tensor) -> Tensor:
        calls.append(x)
        return 3 * x

    prove(monkeypatch, exercise)
    for case in exercise.hidden(matrix.SEEDS[-1]):
        assert len([x for x in calls if same(x, case.args[0])]) == 1


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
