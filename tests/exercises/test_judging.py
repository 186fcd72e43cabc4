"""Reports name misconceptions and causes, but never the right value of a value exercise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.exercises import Case, Exercise, case, check, check_exercise, edge, hint, value_exercise
from tests.exercises.toy import doubling


def raising(error: type[Exception]) -> Callable[[Tensor], Tensor]:
    def refuse(x: Tensor) -> Tensor:
        raise error("no")

    return refuse


@pytest.mark.parametrize("wanted", [RuntimeError, Exception])
@pytest.mark.parametrize("raised", [NotImplementedError, RecursionError])
def test_a_stub_does_not_pass_on_invalid_input(wanted: type[Exception], raised: type[Exception]) -> None:
    refuse = raising(wanted)
    assert check_exercise(doubling(reference=refuse), refuse).passed
    assert check_exercise(doubling(reference=refuse), raising(raised)).points == 0


def test_a_reference_without_a_plain_result_passes_no_answer() -> None:
    assert check_exercise(doubling(reference=lambda x: object()), lambda x: object()).points == 0


def test_a_subclass_of_the_expected_exception_passes() -> None:
    refuse, specially = raising(ValueError), raising(type("LearnersError", (ValueError,), {}))
    assert check_exercise(doubling(reference=refuse), specially).passed
    assert check_exercise(doubling(reference=specially), refuse).points == 0


def with_two(first: Callable[[Tensor], Any], second: Callable[[Tensor], Any], **changes: Any) -> Any:
    exercise = doubling(**changes)
    exercise.misconceptions.clear()
    for wrong in (first, second):
        exercise.misconception(wrong.__name__)(wrong)
    return exercise


def edge_cases() -> list[Case]:
    return [
        case("up", torch.tensor([3.0, 4.0, 5.0])),
        case("down", torch.tensor([-5.0, 6.0])),
        edge(case("one number", torch.tensor([7.0]))),
        case("none", torch.tensor([])),
    ]


def squares(x: Tensor) -> Tensor:
    return x * x


def cubes_of_one(x: Tensor) -> Tensor:
    return x**3 if len(x) == 1 else x * x


def test_a_mistake_is_recognised_although_edge_cases_differ() -> None:
    def as_list(x: Tensor) -> list[float]:
        if len(x) < 2:
            raise TypeError("too short")
        return (x.double() ** 2).tolist()

    report = check_exercise(with_two(squares, lambda x: x, cases=edge_cases()), as_list)
    told = "“one number” and “none” fail, too: the exception comes from a `raise` or an `assert` of your own"
    assert (report.mistake, report.also_wrong) == ("squares", f"{told}, and these inputs are allowed.")
    assert report.sentences[-1] == report.also_wrong


def normalised(x: Tensor) -> Tensor:
    return x / x.sum() if x.any() else x


def with_nan(x: Tensor) -> Tensor:
    return x / x.sum()


def with_exception(x: Tensor) -> list[float]:
    return [number / sum(x.tolist()) for number in x.tolist()]


def with_zeros(count: int) -> list[Case]:
    zeros = [case(f"zeros {size}", torch.zeros(size)) for size in range(2, count + 2)]
    return [case("up", torch.tensor([1.0, 2.0])), case("a sum of two", torch.tensor([0.5, 1.5])), *zeros]


@pytest.mark.parametrize(
    ("mistake", "answer", "also_wrong"),
    [
        (normalised, with_nan, "“zeros 2” fails, too: every wrong number in your result is NaN."),
        (normalised, with_exception, "“zeros 2” fails, too: the line divides by something that is 0 there."),
        (with_nan, normalised, ""),
    ],
)
def test_a_mistake_is_recognised_with_and_without_a_guard(
    mistake: Callable[[Tensor], Tensor], answer: Callable[[Tensor], Any], also_wrong: str
) -> None:
    halves = {"reference": lambda x: x / 2, "hidden_cases": None}
    report = check_exercise(with_two(mistake, squares, cases=with_zeros(1), **halves), answer)
    assert (report.mistake, report.also_wrong) == (mistake.__name__, also_wrong)
    assert not check_exercise(with_two(mistake, squares, cases=with_zeros(3), **halves), answer).mistake


def test_nan_in_one_case_does_not_hide_what_the_others_show() -> None:
    exercise = with_two(squares, squares, cases=with_zeros(1))
    report = check_exercise(exercise, lambda x: 3 * x if x.any() else x / 0)
    assert report.diagnosis == "In “up” and “a sum of two”: every number that differs is 1.5 times the expected one."


def test_two_mistakes_that_fit_equally_are_both_named() -> None:
    exercise = with_two(squares, cubes_of_one, cases=edge_cases())
    report = check_exercise(exercise, lambda x: x * x if len(x) > 1 else -x)
    assert report.mistake == "squares Or: cubes_of_one"
    assert report.also_wrong == "“one number” fails, too."


def test_one_small_wrong_result_names_no_mistake_if_an_edge_differs() -> None:
    def answer(x: Tensor) -> Tensor:
        return x if len(x) == 1 else 2 * x if x[0] > 0 else torch.stack([x[0], 2 * x[1]])

    def first_kept(x: Tensor) -> Tensor:
        return torch.cat([x[:1], 2 * x[1:]]) if len(x) > 1 and x[0] < 0 else 2 * x

    assert not check_exercise(with_two(first_kept, squares, cases=edge_cases()), answer).mistake


def test_a_wrong_dtype_is_only_recognised_as_itself() -> None:
    def in_double(x: Tensor) -> Tensor:
        return 2 * x.double()

    exercise = with_two(in_double, squares, cases=edge_cases())
    assert check_exercise(exercise, in_double).mistake == "in_double"
    assert not check_exercise(exercise, lambda x: (2 * x).tolist()).mistake


def refuses(message: str, error: type[Exception] = ValueError) -> Callable[[Tensor], Tensor]:
    def refuse(x: Tensor) -> Tensor:
        if x[0] < 0:
            raise error(message)
        return 2 * x

    return refuse


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (refuses("no negative numbers"), True),
        (refuses("another message"), True),
        (refuses("no negative numbers", TypeError), False),
        (refuses("no negative numbers", type("SpecialError", (ValueError,), {})), False),
    ],
)
def test_an_exception_names_a_misconception_by_its_class_and_its_message(
    answer: Callable[[Tensor], Tensor], named: bool
) -> None:
    exercise = with_two(refuses("no negative numbers"), lambda x: x)
    assert (check_exercise(exercise, answer).diagnosis == "refuse") is named


def test_an_endless_loop_is_not_taken_for_a_slow_misconception() -> None:
    def slow(x: Tensor) -> Tensor:
        while x[0] < 0:
            pass
        return 2 * x

    def endless(x: Tensor) -> Tensor:
        while True:
            pass

    exercise = with_two(slow, lambda x: x, seconds=0.2)
    assert check_exercise(exercise, slow).diagnosis == "slow"
    assert check_exercise(exercise, endless).diagnosis.startswith("Your code did not come to an end in time")


def test_truth_values_name_a_misconception_only_if_all_cases_agree() -> None:
    def always(x: Tensor) -> bool:
        return True

    cases = [case("one", torch.ones(1)), case("minus one", -torch.ones(1)), case("zero", torch.zeros(1))]
    exercise = with_two(always, lambda x: x, cases=cases, reference=lambda x: bool((x > 0).all()))
    assert check_exercise(exercise, always).diagnosis == "always"
    assert check_exercise(exercise, lambda x: bool((x >= 0).all())).diagnosis != "always"


def test_a_change_in_place_is_not_taken_for_a_misconception() -> None:
    told = check_exercise(doubling(), lambda x: x.mul_(x)).diagnosis
    assert told == "It changes input `x` in place: work on a copy."


def test_one_failing_case_does_not_reveal_a_factor() -> None:
    assert "times" not in check_exercise(doubling(), lambda x: 2 * x if len(x) == 2 else 6 * x).diagnosis


def test_hidden_cases_give_a_diagnosis_if_only_they_fail() -> None:
    report = check_exercise(doubling(), lambda x: 2 * x if len(x) < 3 else 6 * x, hidden=True)
    assert [case.passed for case in report.cases] == [True, True, False, False]
    assert report.diagnosis == "Every number that differs is 3 times the expected one."
    report = check_exercise(doubling(), lambda x: 6 * x if len(x) < 3 else x + 1, hidden=True)
    assert report.diagnosis == (
        "In “two numbers” and “a negative one”: every number that differs is 3 times the expected one."
    )


def test_a_grade_keeps_a_mistake_that_hidden_cases_do_not_show() -> None:
    exercise = doubling()
    exercise.misconception("You triple.")(lambda x: 3 * x)

    def answer(x: Tensor) -> Tensor:
        return 3 * x if len(x) < 3 else x + 1

    assert check_exercise(exercise, answer).diagnosis == "You triple."
    report = check_exercise(exercise, answer, hidden=True)
    assert (report.diagnosis, report.also_wrong) == ("You triple.", "“other sizes” fails, too.")
    right_when_long = check_exercise(exercise, lambda x: 3 * x if len(x) < 3 else 2 * x, hidden=True)
    assert right_when_long.diagnosis == "You triple."


def test_a_grade_and_a_check_report_the_same() -> None:
    def answer(x: Tensor) -> Tensor:
        print("half way")
        return 6 * x

    public, graded = (check_exercise(doubling(), answer, hidden=hidden) for hidden in (False, True))
    assert "is 3 times the expected one" in public.diagnosis
    assert graded.diagnosis == f"In “two numbers” and “a negative one”: {public.diagnosis.replace('E', 'e')}"
    assert graded.cases[:2] == public.cases
    assert "half way" in graded.notes[0]
    assert graded.notes[1:] == public.notes[1:]


def test_a_builtin_overwritten_inside_the_function_is_the_cause() -> None:
    def double(x: Tensor) -> Any:
        sum = 0
        return sum(x)  # type: ignore[operator]

    told = check_exercise(doubling(), double).diagnosis
    assert told == "`sum` is an int inside your function: give it another name there."


def test_another_failing_call_is_not_a_shadowed_builtin() -> None:
    assert "`max`" not in check_exercise(doubling(), lambda x: x(max(1, 2))).diagnosis


@pytest.mark.parametrize(
    "given",
    [
        {"a": torch.tensor([1.0]), "b": [4243.0, "x4244"]},
        {"a": torch.tensor([4242.0]), "b": [1.0, "x4244"]},
        {"a": torch.tensor([4242.0]), "b": [4243.0, "y"]},
        {"a": torch.tensor([4242.0]), "b": [torch.zeros(2), "y"]},
        {"a": 1.0, "b": 2.0},
        3,
        float("nan"),
        object(),
        lambda: 1 / 0,
    ],
)
def test_a_value_exercise_never_shows_the_right_one(given: Any) -> None:
    right = {"a": torch.tensor([4242.0]), "b": [4243.0, "x4244"]}
    exercise = value_exercise("table", points=1, minutes=1, difficulty=1, reference=lambda: right)
    report = check_exercise(exercise, lambda: given)
    assert report.points == 0
    assert report.answered
    told = str(report) + report._repr_html_() + json.dumps(report.to_json())
    for secret in ("4242", "4243", "x4244"):
        assert secret not in told or secret in str(given)
    assert check_exercise(exercise, lambda: right).passed


def test_mixing_up_a_value_and_a_function_is_reported() -> None:
    def two_layer_backward_flops() -> float:
        return 144.0

    with pytest.raises(CourseError, match=r"check\(two_layer_backward_flops=\.\.\.\)"):
        check(two_layer_backward_flops)
    with pytest.raises(CourseError, match=r"`ulp` asks for a function or a class: check\(ulp\)"):
        check(ulp=3)
    assert repr(hint(stall_point)).startswith("Hint 1 of")
    with pytest.raises(CourseError, match="the name of an exercise"):
        hint(3)  # type: ignore[arg-type]


def stall_point() -> None:
    """Have the name of an exercise."""


def test_a_view_compares_a_property_of_the_results() -> None:
    """Only the property counts, for the points and for constants."""
    cases = [case("is it even?"), case("is it large?"), case("is it no multiple of 4?")]

    def view(asked: Case, value: object) -> str:
        if not isinstance(value, int):
            return "no whole number"
        found = {
            "is it even?": "even" if value % 2 == 0 else "odd",
            "is it large?": "large" if value > 9 else "small",
            "is it no multiple of 4?": "a multiple" if value % 4 == 0 else "none",
        }
        return found[asked.name]

    exercise = Exercise("pick", 3, 1, 1, lambda: 10, cases, view=view)
    assert check_exercise(exercise, lambda: 22).passed
    odd = check_exercise(exercise, lambda: 11)
    assert odd.points == 2
    assert [line.message for line in odd.cases] == ["expected “even”, yours: “odd”", "", ""]
    assert not odd.diagnosis
    assert check_exercise(exercise, lambda: "ten").points == 0


def test_a_preview_gives_the_points_until_grading() -> None:
    """It speaks only if all public cases pass, and not in a grade."""
    exercise = Exercise(
        "pick", 3, 1, 1, lambda: 10, [case("is it even?")], hidden_cases=lambda _: [case("is it large?")],
        view=lambda asked, value: "even" if asked.name == "is it even?" and value % 2 == 0 else str(value > 9),
        preview=lambda value: (3, "It looks large.") if value > 9 else (1, "It looks small."),
    )  # fmt: skip
    right, small, odd = (check_exercise(exercise, lambda value=value: value) for value in (22, 4, 11))
    assert (right.points, right.diagnosis, right.notes) == (3, "", ("It looks large.",))
    assert (small.points, small.diagnosis, small.notes, small.passed) == (1, "It looks small.", (), False)
    assert "looks" not in str(odd)
    assert "looks" not in str(check_exercise(exercise, lambda: 4, hidden=True))
