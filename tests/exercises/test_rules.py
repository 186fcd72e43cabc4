"""Forbidden torch calls are detected at run time with the learner's line; allowed calls are not reported."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack, _len_torch_function_stack
from torch.overrides import _pop_mode

from lmcourse.exercises import case, check_exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, Use
from lmcourse.exercises.limits import TimeLimitExceeded
from lmcourse.exercises.outcome import run_case
from tests.exercises.toy import doubling

VECTOR = case("a vector", torch.tensor([1.0, 2.0]))
WITH_GRADIENT = case("a parameter", torch.tensor([1.0, 2.0], requires_grad=True))
SOFTMAX = ("torch.softmax", ".softmax", ".Softmax")


def uses(answer: Callable[..., Any], *rules: str) -> tuple[Use, ...]:
    """Return the detected uses of an answer."""
    outcome = run_case(answer, VECTOR, forbid=rules)
    assert outcome.failure is None, outcome.failure
    return outcome.forbidden


def helper(x: Tensor) -> Tensor:
    return F.softmax(x, dim=-1)


def by_getattr(x: Tensor) -> Any:
    return getattr(torch, "soft" + "max")(x, -1)


def by_exec(x: Tensor) -> Any:
    names = {"torch": torch, "x": x}
    exec("y = torch.softmax(x, -1)", names)
    return names["y"]


class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(-1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: x.softmax(-1),
        lambda x: F.softmax(x, dim=-1),
        lambda x: torch.special.softmax(x, -1),
        lambda x: nn.Softmax(dim=-1)(x),
        lambda x: x.log_softmax(-1).exp(),
        lambda x: torch.ops.aten._softmax(x, -1, False),
        lambda x: Layer()(x),
        helper,
        by_getattr,
        by_exec,
    ],
)
def test_softmax_is_detected_under_any_name(answer: Callable[..., Any]) -> None:
    assert uses(answer, *SOFTMAX)


def test_a_report_names_the_forbidden_call_and_its_line() -> None:
    text = "import torch\n\ndef double(x):\n    y = getattr(torch, 'ad' + 'd')(x, x)\n    return y\n"
    linecache.cache["<cell of add>"] = (len(text), None, text.splitlines(keepends=True), "<cell of add>")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell of add>", "exec"), names)
    report = check_exercise(doubling(forbid=["torch.add"]), names["double"])
    assert report.points == 0
    assert all(one.passed for one in report.cases)
    assert report.diagnosis == (
        "This exercise asks you to do without `torch.add`, which your code uses in line 4 "
        "(`y = getattr(torch, 'ad' + 'd')(x, x)`): it earns no points yet."
    )


def test_the_report_names_the_innermost_line_in_a_helper() -> None:
    [used] = uses(lambda x: helper(x), ".softmax", "torch.nn.functional.softmax")[:1]
    assert used.line == "return F.softmax(x, dim=-1)"


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: (3 * x.requires_grad_()).sum().backward(),
        lambda x: torch.autograd.grad((3 * x.requires_grad_()).sum(), x)[0],
        lambda x: torch.func.grad(lambda y: (3 * y).sum())(x),
    ],
)
def test_backward_is_detected_if_autograd_is_forbidden(answer: Callable[..., Any]) -> None:
    assert uses(answer, *NO_AUTOGRAD)


def test_inputs_that_require_a_gradient_break_no_rule() -> None:
    assert run_case(lambda x: 2 * x, WITH_GRADIENT, forbid=NO_AUTOGRAD).forbidden == ()
    assert run_case(torch.no_grad()(lambda x: 2 * x), WITH_GRADIENT, forbid=NO_AUTOGRAD).forbidden == ()


def test_all_of_torch_can_be_forbidden() -> None:
    assert uses(lambda x: 1 + 1, "torch") == ()
    assert uses(lambda x: x + 1, "torch")


def modes() -> tuple[int, int]:
    """Return the numbers of modes on torch's two stacks."""
    return _len_torch_function_stack(), _len_torch_dispatch_stack()


def test_watching_ends_with_the_case() -> None:
    inside: list[tuple[int, int]] = []
    assert uses(lambda x: inside.append(modes()), "torch.add") == ()
    assert inside == [(1, 1)]
    assert modes() == (0, 0)


def stopped_while_torch_holds_a_mode_back(x: Tensor) -> None:
    _pop_mode()  # type: ignore[no-untyped-call]  # as torch does before it calls a mode
    raise TimeLimitExceeded


def endless(x: Tensor) -> None:
    while True:
        x = x + 1


@pytest.mark.parametrize("answer", [stopped_while_torch_holds_a_mode_back, endless])
def test_a_time_limit_restores_torchs_modes(answer: Callable[..., Any]) -> None:
    outcome = run_case(answer, VECTOR, seconds=0.2, forbid=SOFTMAX)
    assert outcome.timed_out
    assert modes() == (0, 0)
    assert uses(helper, *SOFTMAX)


def test_an_answer_without_torch_runs_as_fast_as_without_rules() -> None:
    """There is no callback for Python's lines or calls."""
    seen: list[object] = []

    def answer(x: Tensor) -> int:
        seen.append((sys.getprofile(), sys.gettrace()))
        return sum(range(1000))

    before = sys.getprofile(), sys.gettrace()
    assert uses(answer, "torch", "math") == ()
    assert seen == [before]
