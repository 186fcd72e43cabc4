"""Compare the engine with torch: every operation, random graphs, long chains, and torch's gradcheck."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.autograd import Value, topological_order

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "a + 2": lambda a, b: a + 2,
    "2 + a": lambda a, b: 2 + a,
    "a - 2": lambda a, b: a - 2,
    "2 - a": lambda a, b: 2 - a,
    "a * 2": lambda a, b: a * 2,
    "2 * a": lambda a, b: 2 * a,
    "a / 2": lambda a, b: a / 2,
    "2 / a": lambda a, b: 2 / a,
    "a ** 3": lambda a, b: a**3,
    "a ** -1": lambda a, b: a**-1,
    "a ** 0": lambda a, b: a**0 + b,
    "(a * a) ** 0.5": lambda a, b: (a * a) ** 0.5,
    "2 ** a": lambda a, b: 2**a,
    "-a": lambda a, b: -a,
    "exp": lambda a, b: a.exp(),
    "log": lambda a, b: (a * a).log(),
    "tanh": lambda a, b: a.tanh(),
    "relu": lambda a, b: a.relu() + b.relu(),
}


def leaves(*numbers: float) -> list[Tensor]:
    return [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in numbers]


def agree(ours: Value, theirs: Tensor, pairs: list[tuple[Value, Tensor]]) -> None:
    """Run both backward passes and compare the result and the gradients of the leaves."""
    ours.backward()
    theirs.backward()
    assert ours.data == pytest.approx(theirs.item(), rel=1e-12, abs=1e-12)
    for value, tensor in pairs:
        expected = 0.0 if tensor.grad is None else tensor.grad.item()
        assert value.grad == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("numbers", [(1.5, -0.7), (-0.3, 2.0), (3.0, 0.25)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_agrees_with_torch(name: str, numbers: tuple[float, float]) -> None:
    a, b = (Value(number) for number in numbers)
    s, t = leaves(*numbers)
    agree(OPERATIONS[name](a, b), OPERATIONS[name](s, t), [(a, s), (b, t)])


@pytest.mark.parametrize("name", ["relu", "a ** 3", "tanh", "a ** 0"])
def test_operations_at_zero_match_torch(name: str) -> None:
    a, b = Value(0.0), Value(0.0)
    s, t = leaves(0.0, 0.0)
    agree(OPERATIONS[name](a, b), OPERATIONS[name](s, t), [(a, s), (b, t)])


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b * 0.3,
    lambda a, b: a / (b * b + 1),
    lambda a, b: 1 - a.tanh() * b,
    lambda a, b: (a.tanh() + b.tanh()).exp(),
    lambda a, b: (a * a + 1).log() + b,
    lambda a, b: (a + 0.1).relu() - b.relu(),
    lambda a, b: (b.tanh() + 2) ** 2.5,
]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int, int]]]:
    """Draw leaves, and steps that combine two earlier nodes: (operation, first, second)."""
    numbers = draw(st.lists(st.floats(-2, 2), min_size=1, max_size=4))
    count = draw(st.integers(1, 25))
    steps = []
    for done in range(count):
        node = st.integers(0, len(numbers) + done - 1)
        steps.append((draw(st.integers(0, len(STEPS) - 1)), draw(node), draw(node)))
    return numbers, steps


@settings(deadline=None)
@given(programs())
def test_random_graphs_agree_with_torch(program: tuple[list[float], list[tuple[int, int, int]]]) -> None:
    numbers, steps = program
    ours: list[Any] = [Value(number) for number in numbers]
    theirs: list[Any] = leaves(*numbers)
    pairs = list(zip(ours, theirs, strict=True))
    for nodes in (ours, theirs):
        for operation, first, second in steps:
            nodes.append((STEPS[operation](nodes[first], nodes[second])).tanh())
        nodes.append(sum(nodes[1:], nodes[0]))
    agree(ours[-1], theirs[-1], pairs)


def test_backward_works_on_a_chain_of_ten_thousand_nodes() -> None:
    x = Value(0.5)
    y = x
    for _ in range(10_000):
        y = y * 0.999 + x
    y.backward()
    assert len(topological_order(y)) > 20_000
    assert x.grad == pytest.approx(math.fsum(0.999**k for k in range(10_001)), rel=1e-12)


def test_leaf_gradients_add_up_and_inner_ones_are_reset_as_in_torch() -> None:
    a, b = Value(2.0), Value(3.0)
    middle = a * b
    end = middle * middle
    s, t = leaves(2.0, 3.0)
    torch_end = (s * t) * (s * t)
    for times in (1, 2, 3):
        end.backward()
        torch_end.backward(retain_graph=True)
        assert (a.grad, b.grad) == (s.grad.item(), t.grad.item()) == (36.0 * times, 24.0 * times)
        assert (middle.grad, end.grad) == (12.0, 1.0)


def test_operations_without_a_real_result_are_rejected() -> None:
    with pytest.raises(ValueError, match="not a real number"):
        Value(-2.0) ** 0.5
    with pytest.raises(TypeError):
        Value(2.0) ** Value(3.0)  # type: ignore[operator]
    with pytest.raises(ValueError):  # noqa: PT011 (Python's own words, which change)
        Value(0.0).log()
    with pytest.raises(ZeroDivisionError):
        Value(1.0) / 0


def test_a_value_shows_its_number_and_gradient() -> None:
    a = Value(2.0, "a")
    (a * 3).backward()
    assert repr(a) == "Value(2, grad=3)"
