"""The proof proves: it fails when a test of an exercise has no teeth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.course import Chapter
from lmcourse.exercises import Exercise, case
from lmcourse.exercises.values import same
from lmcourse.proof import prove as proof_module
from lmcourse.proof.answers import AnswerCell
from lmcourse.proof.matrix import Matrix
from lmcourse.proof.prove import SEEDS
from tests.exercises.toy import doubling

CHAPTER = Chapter("99-toy", "Toy", 1, "0")
PUBLIC = [case.args[0] for case in doubling().cases]
RIGHT = "return x + x"
STUB = "raise NotImplementedError"


def right(x: Tensor) -> Tensor:
    return x + x


def prove(exercise: Exercise, solution: str = RIGHT, stub: str = STUB, mutant_seeds: int = 0, **names: Any) -> Matrix:
    """Prove an exercise whose printed solution and stub have these lines."""
    texts = [f"def double(x):\n    {line}\n" for line in (solution, stub)]
    cell = AnswerCell(exercise, *texts, {"__name__": "__main__", **names})
    return proof_module.prove({CHAPTER: [cell]}, mutant_seeds)


def test_an_exercise_in_order_is_proved() -> None:
    proof = prove(doubling())
    assert proof.proved
    told = proof.to_json()
    rows = told.pop("rows")
    assert told == {
        "exercises": 1,
        "misconceptions": 2,
        "killed": 2,
        "named": 2,
        "lucky": 0,
        "variants": 1,
        "variants_full": 1,
        "mutants": 1,
        "mutants_killed": 1,
        "equivalent": 0,
        "solutions_full": True,
        "stubs_zero": True,
        "variants_not_full": [],
        "survivors": [],
        "lucky_mutants": [],
        "untrue": [],
        "confused": [],
    }
    assert [row["misconception"] for row in rows] == ["squared", "absolute"]


def test_a_misconception_that_passes_breaks_the_proof() -> None:
    exercise = doubling()
    exercise.misconception("Not wrong at all.")(right)
    proof = prove(exercise)
    assert not proof.proved
    assert proof.to_json()["killed"] == 2


def test_a_misconception_that_goes_by_anothers_name_breaks_the_proof() -> None:
    exercise = doubling()

    @exercise.misconception("Squared too, in other words.")
    def power(x: Tensor) -> Tensor:
        return x**2

    proof = prove(exercise)
    assert not proof.proved
    assert (proof.to_json()["killed"], proof.to_json()["named"]) == (3, 1)


def test_a_misconception_that_only_the_grade_can_name_breaks_the_proof() -> None:
    exercise = doubling()

    @exercise.misconception("You square, but short tensors only.")
    def squared_when_short(x: Tensor) -> Tensor:
        return x * x if len(x) < 3 else 3 * x

    proof = prove(exercise)
    row = proof.rows[-1]
    assert (row.killed, row.diagnosed_in_grade, row.diagnosed_in_public, row.named) == (True, True, False, False)
    assert not proof.proved


def test_a_solution_that_loses_points_breaks_the_proof() -> None:
    proof = prove(doubling(), solution="return 2 * x if len(x) < 5 else x")
    assert not proof.proved
    assert proof.not_full == ("double",)


def test_a_stub_that_earns_points_breaks_the_proof() -> None:
    proof = prove(doubling(), stub=RIGHT)
    assert not proof.proved
    assert proof.not_zero == ("double",)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_misconception_that_one_seed_lets_pass_breaks_the_proof(seed: int) -> None:
    exercise = doubling()
    spared = [case.args[0] for case in exercise.hidden(seed)]

    @exercise.misconception("You triple, but not what this seed asks.")
    def tripled(x: Tensor) -> Tensor:
        return 2 * x if any(same(x, other) for other in [*PUBLIC, *spared]) else 3 * x

    [row] = prove(exercise).rows[2:]
    assert not row.killed


@pytest.mark.parametrize("seed", [0, 3, SEEDS[-1]])
def test_a_solution_that_fails_under_one_seed_breaks_the_proof(seed: int) -> None:
    asked = [case.args[0] for case in doubling().hidden(seed)]

    def unlucky(x: Tensor) -> Tensor:
        return x if any(same(x, other) for other in asked) else 2 * x

    assert prove(doubling(), "return unlucky(x)", unlucky=unlucky).not_full == ("double",)


def test_each_answer_runs_once_on_each_case() -> None:
    exercise = doubling()
    calls: list[Tensor] = []

    @exercise.misconception("You triple.")
    def tripled(x: Tensor) -> Tensor:
        calls.append(x)
        return 3 * x

    prove(exercise)
    for asked in exercise.hidden(SEEDS[-1]):
        assert len([x for x in calls if same(x, asked.args[0])]) == 1


def test_a_misconception_whose_points_depend_on_the_seed_breaks_the_proof() -> None:
    """It is wrong in random cases only: those count for who has all others right."""
    exercise = doubling(hidden_cases=lambda random: [case("more", torch.tensor([random.random()])) for _ in range(4)])
    spared = [case.args[0] for case in exercise.hidden(SEEDS[-1])[:3]]

    @exercise.misconception("You triple what is asked in a grade, but for three cases of this seed.")
    def tripled(x: Tensor) -> Tensor:
        return 2 * x if any(same(x, other) for other in [*PUBLIC, *spared]) else 3 * x

    proof = prove(exercise)
    assert (proof.rows[-1].killed, proof.rows[-1].lucky, proof.proved) == (True, True, False)


def test_two_misconceptions_that_no_public_case_tells_apart_break_the_proof() -> None:
    exercise = doubling()
    for sentence, tall in (("You triple.", 2), ("You triple, and forget the tall.", 3)):

        @exercise.misconception(sentence)
        def tripled(x: Tensor, tall: int = tall) -> Tensor:
            return x if len(x) > tall else 3 * x

    proof = prove(exercise)
    assert (proof.confused, proof.proved) == (("double: tripled = tripled",), False)


def test_a_variant_that_is_wrong_or_breaks_a_rule_breaks_the_proof() -> None:
    exercise = doubling(forbid=["torch.add"])

    @exercise.variant
    def added(x: Tensor) -> Tensor:
        return torch.add(x, x)

    @exercise.variant
    def helped(x: Tensor) -> Tensor:
        return right(x)

    proof = prove(exercise)
    assert not proof.proved
    assert [(one.variant, one.lost) for one in proof.variants] == [
        ("from numbers", ""),
        ("added", proof.variants[1].lost),
        ("helped", proof.variants[-1].lost),
    ]
    assert "asks you to do without `torch.add`" in proof.variants[1].lost
    assert "has that name" in proof.variants[-1].lost


LENIENT = "y = 2 * x if len(x) < 9 else x\n    return y"
"""A solution of which a mutant survives: no case is that long."""


def test_a_mutant_that_keeps_its_points_breaks_the_proof() -> None:
    proof = prove(doubling(), LENIENT)
    assert not proof.proved
    changes = [mutant.change for mutant in proof.survivors]
    assert "y = 2 * x if len(x) < 9 else x → y = 2 * x if len(x) < 10 else x" in changes
    assert "y = 2 * x if len(x) < 9 else x → y = 3 * x if len(x) < 9 else x" not in changes


def test_a_mutant_may_be_declared_equivalent_if_it_is() -> None:
    exercise = doubling()
    survivors = [mutant.change for mutant in prove(doubling(), LENIENT).survivors]
    for change in survivors:
        exercise.equivalent_mutant(change, "No tensor is that long.")
    assert prove(exercise, LENIENT).proved
    exercise.equivalent_mutant("y = 2 * x → y = 3 * x", "There is no such mutant.")
    killed = "y = 2 * x if len(x) < 9 else x → y = 3 * x if len(x) < 9 else x"
    exercise.equivalent_mutant(killed, "This one is wrong.")
    proof = prove(exercise, LENIENT)
    assert (proof.untrue, proof.proved) == (("double: y = 2 * x → y = 3 * x", f"double: {killed}"), False)


def test_a_mutant_that_only_a_random_case_catches_survives() -> None:
    exercise = doubling()
    proof = prove(exercise, "return x + x if len(x) < 4 else 2 * x")
    assert "return x + x if len(x) < 4 else 2 * x → return x + x if len(x) < 4 else 3 * x" in [
        mutant.change for mutant in proof.survivors
    ]


def test_a_mutant_whose_points_depend_on_the_seed_breaks_the_proof_if_asked() -> None:
    solution = "return x + x if x.max() < 0.9 else 2 * x"
    change = f"{solution} → return x + x if x.max() < 0.9 else 3 * x"
    [mutant] = [each for each in prove(doubling(), solution, mutant_seeds=20).lucky_mutants if each.change == change]
    assert mutant.killed
    assert mutant.points == (0.0, 1.0)
    assert prove(doubling(), solution).lucky_mutants == []
