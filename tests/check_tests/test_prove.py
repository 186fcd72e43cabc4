"""`prove` fails if an exercise lets a wrong answer pass or a right answer fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.check_tests import prove as proof_module
from lmcourse.check_tests.answers import AnswerCell
from lmcourse.check_tests.mutants import mutants
from lmcourse.check_tests.results import CheckResults
from lmcourse.course.chapters import Chapter
from lmcourse.exercises import Exercise, case, script
from lmcourse.exercises.values import same
from tests.exercises.toy import answering, doubling

CHAPTER = Chapter("99-toy", "Toy", "0")
RIGHT = "return x + x"
STUB = "raise NotImplementedError"


def right(x: Tensor) -> Tensor:
    return x + x


def prove(exercise: Exercise, solution: str = RIGHT, stub: str = STUB, **names: Any) -> CheckResults:
    """Run `prove` on an exercise whose printed solution and stub have these lines."""
    printed, handed_out = (f"def double(x):\n    {line}\n" for line in (solution, stub))
    cell = AnswerCell(exercise, printed, handed_out, {"__name__": "__main__", **names})
    return proof_module.prove({CHAPTER: [cell]})


def test_a_correct_exercise_passes_the_matrix() -> None:
    proof = prove(doubling())
    assert proof.proved
    told = {name: part for name, part in proof.to_json().items() if part}
    rows = told.pop("rows")
    assert told == {
        "exercises": 1,
        "misconceptions": 2,
        "killed": 2,
        "named": 2,
        "mutilated": 4,
        "variants": 1,
        "variants_full": 1,
        "mutants": 1,
        "mutants_killed": 1,
        "constants": 8,
        "solutions_full": True,
        "stubs_zero": True,
    }
    assert [row["misconception"] for row in rows] == ["squared", "absolute"]


def test_a_misconception_that_passes_fails_the_matrix() -> None:
    exercise = doubling()
    exercise.misconception("Not wrong at all.")(right)
    proof = prove(exercise)
    assert not proof.proved
    assert proof.to_json()["killed"] == 2


def test_a_misconception_named_as_another_fails_the_matrix() -> None:
    exercise = doubling()

    @exercise.misconception("Squared too, in other words.")
    def power(x: Tensor) -> Tensor:
        return x**2

    proof = prove(exercise)
    assert not proof.proved
    assert (proof.to_json()["killed"], proof.to_json()["named"]) == (3, 1)


def test_a_misconception_named_only_in_grading_fails_the_matrix() -> None:
    exercise = doubling()

    @exercise.misconception("You square, but short tensors only.")
    def squared_when_short(x: Tensor) -> Tensor:
        return x * x if len(x) < 3 else 3 * x

    proof = prove(exercise)
    row = proof.rows[-1]
    assert (row.killed, row.named_in_grade, row.named_in_public, row.named) == (True, True, False, False)
    assert not proof.proved


def test_a_solution_that_loses_points_fails_the_matrix() -> None:
    proof = prove(doubling(), solution="return 2 * x if len(x) < 5 else x")
    assert not proof.proved
    assert proof.not_full == ("double",)


def test_a_stub_that_earns_points_fails_the_matrix() -> None:
    proof = prove(doubling(), stub=RIGHT)
    assert not proof.proved
    assert proof.not_zero == ("double",)


def test_each_answer_runs_once_on_each_case() -> None:
    exercise = doubling()
    calls: list[Tensor] = []

    @exercise.misconception("You triple.")
    def tripled(x: Tensor) -> Tensor:
        calls.append(x)
        return 3 * x

    prove(exercise)
    for asked in (*exercise.cases, *exercise.hidden):
        assert len([x for x in calls if same(x, asked.args[0])]) == 1


def test_misconceptions_equal_in_public_fail_the_matrix() -> None:
    exercise = doubling()
    for sentence, tall in (("You triple.", 2), ("You triple, and forget the tall.", 3)):

        @exercise.misconception(sentence)
        def tripled(x: Tensor, tall: int = tall) -> Tensor:
            return x if len(x) > tall else 3 * x

    proof = prove(exercise)
    assert (proof.confused, proof.proved) == (("double: tripled = tripled",), False)


def twice(x: Tensor) -> Tensor:
    return 2 * x


def test_a_mistake_may_be_a_slip_of_two_right_answers() -> None:
    exercise = doubling()
    exercise.slips(exercise.variant(right), {"return x + x → return x + x + x": "You triple."})
    exercise.slips(exercise.variant(twice), {"2 → 3": "You triple."})
    assert not prove(exercise).confused
    exercise.slips(right, {"x + x → 3 * x": "You triple."})
    with pytest.raises(CourseError, match="add a public case"):
        prove(exercise)


def test_a_variant_that_is_wrong_or_breaks_a_rule_fails_the_matrix() -> None:
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
    assert "No variable of that name exists" in proof.variants[-1].lost


LENIENT = "y = 2 * x if len(x) < 9 else x\n    return y"
"""A solution with a surviving mutant, because no case is long enough."""


def test_a_mutant_that_keeps_its_points_fails_the_matrix() -> None:
    proof = prove(doubling(), LENIENT)
    assert not proof.proved
    changes = [mutant.change for mutant in proof.survivors]
    assert "y = 2 * x if len(x) < 9 else x → y = 2 * x if len(x) < 10 else x" in changes
    assert "y = 2 * x if len(x) < 9 else x → y = 3 * x if len(x) < 9 else x" not in changes


def test_a_mutant_that_only_hidden_cases_catch_fails_the_matrix() -> None:
    hidden = [case("long", torch.arange(9.0))]
    proof = prove(doubling(hidden_cases=lambda random: hidden), "return 2 * x if len(x) < 10 else x")
    assert [mutant.change for mutant in proof.unseen] == [
        "return 2 * x if len(x) < 10 else x → return 2 * x if len(x) < 9 else x"
    ]
    assert not proof.proved


def test_a_right_mutant_may_be_declared_equivalent() -> None:
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


def test_a_case_whose_script_has_an_undefined_name_fails_the_matrix() -> None:
    proof = prove(doubling(cases=[*doubling().cases, script("a list", "double(tensr([1.0, 2.0]))")]))
    assert (proof.not_full, proof.proved) == (("double",), False)


def test_mutants_drop_a_widening_and_keep_a_conversion_to_a_number() -> None:
    changes = {mutant.change for mutant in mutants("def f(x):\n    return float(x.float().mean())")}
    assert "return float(x.float().mean()) → return float(x.mean())" in changes
    assert "return float(x.float().mean()) → return x.float().mean()" not in changes


def negative(x: Tensor) -> Tensor:
    if x[0] < 0:
        raise ValueError("no negative numbers")
    return 2 * x


GUESSABLE: dict[str, tuple[Exercise, set[str]]] = {
    "one value for all": (
        doubling(reference=lambda x: True),
        {"double: True earns 2 in the notebook", "double: True earns 2 in the grade"},
    ),
    "one value for all public cases": (
        doubling(reference=lambda x: len(x) > 3 and 2 * x),
        {"double: False earns 2 in the notebook"},
    ),
    "a refusal in all public cases": (
        doubling(cases=[case("negative", torch.tensor([-1.0]))], reference=negative),
        {"double: raises ValueError earns 2 in the notebook"},
    ),
    "values and a refusal": (doubling(reference=negative), set()),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_a_constant_that_earns_points_fails_the_matrix(name: str) -> None:
    exercise, guessable = GUESSABLE[name]
    exercise.misconceptions.clear()
    exercise.variants.clear()
    proof = prove(exercise, "return reference(x)", reference=exercise.reference)
    assert set(proof.guessable) == guessable
    assert proof.proved is not bool(guessable)


def test_a_value_has_no_constants() -> None:
    cell = AnswerCell(answering(), "answer = 6 * 7", "answer = None", {})
    proof = proof_module.prove({CHAPTER: [cell]})
    assert (proof.constants, proof.guessable) == (0, ())


def again(x: Tensor) -> Tensor:
    return torch.tensor([number + number for number in x.tolist()])


def test_a_variant_that_repeats_another_is_named() -> None:
    exercise = doubling()
    exercise.variant(again)
    proof = prove(exercise, torch=torch)
    assert (proof.repeated, proof.proved) == (("double: again repeats from numbers",), False)
    exercise.slips(again, {"number + number → number": "You do not double."})
    assert prove(exercise, torch=torch).repeated == ("double: from numbers repeats again",)
