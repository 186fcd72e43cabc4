"""Test derived cases: scattered inputs, gradients, inputs that a script creates, results that must be new."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.course import chapters as course
from lmcourse.exercises import Case, Exercise, case, check_exercise, script
from lmcourse.exercises.registry import exercises_of
from lmcourse.exercises.tracked import Inputs, scatter, tensors_in
from lmcourse.grading.wire import case_from_plain, case_to_plain, decode, encode
from lmcourse.report import Report

X = torch.arange(1.0, 13.0).reshape(3, 4)


def asking(reference: Callable[..., Any], *cases: Case, name: str = "f", **flags: Any) -> Exercise:
    """Return an exercise of two points."""
    return Exercise(name, 2, 1, 1, reference, [*cases, case("another", *cases[0].args, **cases[0].kwargs)], **flags)


def squares(**flags: Any) -> Exercise:
    """Return an exercise that asks for the square of each number of a matrix."""
    cases = [case("a row", torch.ones(1, 4)), case("a matrix", X), case("a column", X[:, :1])]
    return Exercise("f", 3, 1, 1, lambda x: x**2, cases, **flags)


def failing(report: Report) -> dict[str, str]:
    """Return the failures by the names of cases."""
    return {one.name: one.message for one in report.cases if not one.passed}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_a_scattered_tensor_has_the_same_numbers_and_no_stride_of_1(dtype: torch.dtype) -> None:
    tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)
    view = scatter(tensor)
    assert torch.equal(view, tensor)
    assert view.storage_offset() > 0
    assert 1 not in view.stride()
    assert not view.is_contiguous()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        view.view(6, 4)


def test_a_scattered_leaf_still_requires_a_gradient() -> None:
    view = scatter(X.clone().requires_grad_())
    assert view.is_leaf
    assert view.requires_grad
    buffer = view.detach().as_strided((view.untyped_storage().size() // 4,), (1,), 0)
    assert int(buffer.isnan().sum()) == len(buffer) - X.numel()


def test_failures_on_scattered_inputs_alone_are_explained() -> None:
    report = check_exercise(squares(), lambda x: (x.view(-1) ** 2).view(x.shape))
    assert [*failing(report)] == ["a matrix: inputs not contiguous"]
    assert report.diagnosis.startswith(
        "“a matrix” passes, but your answer fails where its tensors are not contiguous in memory"
    )
    assert (report.groups, report.points) == ((2, 3), 2.0)
    assert check_exercise(squares(), lambda x: x.reshape(-1).square().reshape(x.shape)).passed
    assert check_exercise(squares(contiguous="a reason"), lambda x: (x.view(-1) ** 2).view(x.shape)).passed


def test_as_strided_that_ignores_the_offset_fails() -> None:
    report = check_exercise(squares(), lambda x: x.as_strided(x.shape, x.stride(), 0) ** 2)
    assert [*failing(report)] == ["a matrix: inputs not contiguous"]


def test_scripts_with_tensors_are_run_again_scattered() -> None:
    exercise = asking(lambda x: x + 1, script("one line", "f(x)", x=X))
    assert [one.name for one in exercise.public if one.of] == ["one line: inputs not contiguous"]
    assert [*failing(check_exercise(exercise, lambda x: x.view(-1).view(3, 4) + 1))] == [
        "one line: inputs not contiguous"
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: x.detach() ** 2, "autograd cannot reach `x` from the result"),
        (torch.no_grad()(lambda x: x**2), "autograd cannot reach `x` from the result"),
        (lambda x: x * x.detach(), "the gradient at `x`: "),
        (lambda x: x.clone().data.square_(), "autograd cannot reach `x` from the result"),
    ],
)
def test_an_answer_with_wrong_gradients_loses_one_group(answer: Callable[..., Any], message: str) -> None:
    report = check_exercise(squares(differentiable=True, contiguous="a reason"), answer)
    wrong = failing(report)
    assert [*wrong] == ["a matrix: its gradients"]
    assert wrong["a matrix: its gradients"].startswith(message)
    assert report.diagnosis == f"“a matrix” passes, but its gradients do not: {wrong['a matrix: its gradients']}."
    assert report.groups == (2, 3)


def test_right_gradients_pass_from_any_computation() -> None:
    exercise = squares(differentiable=True)
    assert check_exercise(exercise, torch.square).passed
    assert check_exercise(exercise, lambda x: torch.stack([row * row for row in x])).passed


@pytest.mark.parametrize(
    ("lines", "answer", "message"),
    [
        ("f([3, 1])", lambda x: x.pop(0), "it changes `[3, 1]` in place: work on a copy"),
        ("f({'a': [1]})", lambda x: x["a"].pop(), "it changes `{'a': [1]}` in place: work on a copy"),
        ("f(torch.ones(2))", lambda x: float(x.div_(2).sum()), "it changes `torch.ones(2)` in place: work on a copy"),
        ("y = [1, 2]\nf(y)", lambda x: x.reverse(), "it changes `y` in place: work on a copy"),
    ],
)
def test_results_of_a_script_must_not_change(lines: str, answer: Callable[..., Any], message: str) -> None:
    text = f"import torch\n{lines}"
    exercise = asking(lambda x: answer(copy.deepcopy(x)), script("it", text))
    assert failing(check_exercise(exercise, answer))["it"] == message
    assert check_exercise(exercise, exercise.reference).passed


def test_a_script_may_change_what_its_reference_changes() -> None:
    exercise = asking(lambda x: x.append(1), script("it", "y = []\nf(y)\ny"))
    assert check_exercise(exercise, lambda x: x.extend([1])).passed


def test_objects_made_by_the_answer_are_not_script_inputs() -> None:
    made: list[list[int]] = []

    def emptying_the_last(x: list[int]) -> list[int]:
        for last in made:
            last.clear()
        made.append([*x])
        return made[-1]

    exercise = asking(lambda x: [*x], script("it", "y = f([1, 2])\nlen(f([3]))"))
    assert check_exercise(exercise, emptying_the_last).passed


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (case("it", X), lambda x: x),
        (case("it", X), lambda x: x.view(3, 4)),
        (case("it", [1, 2]), lambda x: x),
        (script("it", "f([1, 2])"), lambda x: x),
        (script("it", "f(x)", x=X), lambda x: x[:]),
    ],
)
def test_a_returned_input_fails_where_a_new_result_is_needed(asked: Case, answer: Callable[..., Any]) -> None:
    exercise = asking(lambda x: x.clone() if isinstance(x, Tensor) else [*x], asked, new=True)
    assert failing(check_exercise(exercise, answer))["it"].startswith("the result is not new: it is ")
    assert check_exercise(exercise, exercise.reference).passed
    exercise.new = False
    assert check_exercise(exercise, answer).passed


def test_layout_and_gradients_of_a_case_are_sent_to_the_sandbox() -> None:
    for one in squares(differentiable=True).public:
        sent = case_from_plain(decode(encode(case_to_plain(one))))
        assert (sent.layout, sent.gradients) == (one.layout, one.gradients)
        assert Inputs(sent).args[0].stride() == Inputs(one).args[0].stride()


@pytest.mark.parametrize("chapter", course.CHAPTERS, ids=lambda chapter: chapter.id)
def test_each_exercise_with_tensors_has_a_scattered_case_or_a_reason(chapter: course.Chapter) -> None:
    for exercise in exercises_of(chapter):
        if any(tensor.ndim for one in exercise.cases for tensor in tensors_in([one.args, dict(one.kwargs)])):
            scattered = [one for one in exercise.public if one.layout]
            assert len(scattered) == 1 or exercise.contiguous, exercise.name
        if exercise.differentiable:
            assert any(one.gradients for one in exercise.public), exercise.name
