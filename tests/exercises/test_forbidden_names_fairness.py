"""Answers that only seem to use forbidden names pass, and hidden uses are found."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lmcourse.exercises import case
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, forbidden_in_source
from lmcourse.exercises.outcome import run_case

VECTOR = case("a vector", torch.tensor([1.0, 2.0]))
SOFTMAX = ["torch.softmax", ".softmax", ".Softmax", ".sigmoid", ".layer_norm"]


def verdicts(answer: Callable[..., Any], *forbid: str) -> tuple[list[str], list[str]]:
    """Return the forbidden names in the source, and the forbidden torch operators that ran."""
    outcome = run_case(answer, VECTOR, forbid=forbid)
    assert outcome.failure is None, outcome.failure
    found = forbidden_in_source(answer, forbid), outcome.forbidden
    return [use.name for use in found[0]], [use.name for use in found[1]]


def norm(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


class Table:
    norm = 3


TABLE = Table()


def variable_named_like_a_function(x: Tensor) -> float:
    sum = 0.0
    for value in x.tolist():
        sum = sum + value
    return sum


def softmax(x: Tensor) -> Tensor:
    return x.exp() / x.exp().sum()


def annotations(x: nn.Module) -> nn.Module:
    y: nn.Module = x
    return y


def shows_a_tensor(x: Tensor) -> str:
    print(x)
    return f"{x}" + str(x)


def imports_a_submodule(x: Tensor) -> Tensor:
    import torch.utils.data

    return torch.exp(x)


def raises_inside(x: Tensor) -> float:
    try:
        raise ValueError("a warning, of a kind")
    except ValueError:
        return 0.0


@pytest.mark.parametrize(
    ("answer", "forbid"),
    [
        (variable_named_like_a_function, ["builtins.sum"]),
        (lambda x, max=3: max, ["builtins.max", ".max"]),
        (lambda x: TABLE.norm, SOFTMAX),
        (lambda x: softmax(x), SOFTMAX),
        (lambda x: (x - x.amax()).exp() / (x - x.amax()).exp().sum(), SOFTMAX),
        (lambda x: torch.tensor(sorted(map(abs, x.tolist()))) / max(1.0, math.sqrt(2)), [*SOFTMAX, "math.frexp"]),
        (annotations, ["torch", ".Module"]),
        (shows_a_tensor, [".max", ".abs", ".tolist", ".item", "torch.Tensor.max"]),
        (imports_a_submodule, ["torch.utils.data.DataLoader", "torch.nn"]),
        (lambda x: x + 1, [".clone", ".detach", ".as_subclass", *NO_AUTOGRAD]),
        (lambda x: [x, {"a": x}], [".clone", ".detach"]),
        (raises_inside, ["lmcourse", "warnings", "io"]),
        (lambda x: print(x) or 1, ["lmcourse"]),
    ],
)
def test_allowed_answers_break_no_rule(answer: Callable[..., Any], forbid: list[str]) -> None:
    assert verdicts(answer, *forbid) == ([], [])


@torch.no_grad()
def under_a_decorator(x: Tensor) -> Any:
    return torch.softmax(x, -1)


@functools.cache
def remembered(x: Tensor) -> Any:
    return torch.softmax(x, -1)


def in_a_function_inside(x: Tensor) -> Any:
    def inside() -> Tensor:
        return norm(x)

    return inside()


def with_text_at_the_margin(x: Tensor) -> Any:
    """A docstring
    that starts at the margin, as in many a cell.
    """
    return torch.softmax(x, -1)


def beside_an_import(x: Tensor) -> Any:
    import torch.utils.data

    return torch.softmax(x, -1)


class Soft(nn.Module):
    weigh = staticmethod(torch.softmax)

    def forward(self, x: Tensor) -> Tensor:
        return self.weigh(x, -1)


class Softer:
    @property
    def weights(self) -> Tensor:
        return torch.softmax(torch.zeros(2), -1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, s=torch.softmax: s(x, -1),
        lambda x: Softer().weights,
        lambda x: Soft()(x),
        under_a_decorator,
        remembered,
        in_a_function_inside,
        with_text_at_the_margin,
        beside_an_import,
    ],
)
def test_forbidden_names_are_found_in_source_and_calls(answer: Callable[..., Any]) -> None:
    source, run = verdicts(answer, "torch.softmax")
    assert source == ["torch.softmax"]
    assert run == (["torch.softmax"] if isinstance(answer, FunctionType) else [])


def test_a_class_with_a_forbidden_base_is_found() -> None:
    assert [used.name for used in forbidden_in_source(Soft, ("torch.nn",))] == ["torch.nn.modules.module.Module"]
    assert forbidden_in_source(Softer, ("torch.nn",)) == []
