"""Test the inputs that an answer gets, and the results that are taken from it."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lmcourse.exercises import case
from lmcourse.exercises.cases import script
from lmcourse.exercises.compare import difference
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.values import Special, copy_input, format_value, same, to_plain


def outcome_of(answer: Callable[..., Any], *inputs: Any, **named: Any) -> Outcome:
    return run_case(answer, case("it", *inputs, **named))


def test_every_case_gets_new_inputs() -> None:
    given = case("it", torch.zeros(2), [1, [2]], {"a": torch.zeros(1)})

    def change(x: Tensor, y: list[Any], z: dict[str, Tensor]) -> float:
        x += 1
        y[1].append(3)
        z["a"].fill_(7)
        return float(x.sum())

    for _ in range(2):
        outcome = run_case(change, given)
        assert outcome.value == 2
        assert outcome.changed == ("input `x`", "input `y`", "input `z`")


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1),
        lambda x: x.t_(),
        lambda x: x.resize_(0),
        lambda x: x.mul_(float("nan")),
        lambda x: x[0].neg_(),
    ],
)
def test_every_change_of_an_input_is_detected(change: Callable[[Tensor], Any]) -> None:
    assert outcome_of(change, torch.zeros(2, 3)).changed == ("input `x`",)
    assert outcome_of(lambda *inputs: change(inputs[0]), torch.zeros(2, 3)).changed == ("input 1",)
    assert outcome_of(lambda **inputs: change(inputs["x"]), x=torch.zeros(2, 3)).changed == ("input `x`",)


def test_an_object_put_into_an_input_counts_as_a_change() -> None:
    class Strange(list[Any]):
        def __repr__(self) -> str:
            raise SystemExit

        def __len__(self) -> int:
            raise SystemExit

    def leave(x: list[Any]) -> int:
        x[0] = Strange()
        return 1

    assert outcome_of(leave, [[1]]).changed == ("input `x`",)
    assert outcome_of(lambda x: x.append(x), [1]).changed == ("input `x`",)


def test_unchanged_inputs_are_not_reported() -> None:
    nan = torch.tensor([math.nan, -0.0])
    assert outcome_of(lambda x, y, z: x.clone().add_(1), nan, [math.nan, {"a": None}], 3).changed == ()


def test_a_value_that_a_script_returns_is_compared_once() -> None:
    lines = "log = []\ncall(log.append)\n"
    calls = [run_case(lambda act: act(1), script("a case", lines + end), name="call") for end in ("", "log")]
    assert [outcome.changed for outcome in calls] == [("`log`",), ()]


def test_an_input_keeps_requires_grad_and_strides() -> None:
    weight = torch.arange(6.0).reshape(2, 3).requires_grad_()

    def gradient(w: Tensor) -> Tensor:
        assert w.is_leaf
        (w**2).sum().backward()
        assert w.grad is not None
        return w.grad

    assert torch.equal(outcome_of(gradient, weight).value, 2 * weight)
    assert weight.grad is None
    assert copy_input(torch.zeros(2, 3).T).stride() == (1, 3)
    assert outcome_of(lambda x: x.view(-1), torch.zeros(2, 3).T).failure is not None
    assert outcome_of(lambda x: x.add_(1), torch.zeros(1, 3).expand(2, 3)).changed == ("input `x`",)


def test_a_result_is_copied_before_it_can_change() -> None:
    kept: list[Tensor] = []

    def view(x: Tensor) -> Tensor:
        for old in kept:
            old.zero_()
        kept.append(x)
        return x[:1]

    first = outcome_of(view, torch.ones(2))
    second = outcome_of(view, torch.ones(2))
    assert first.value.item() == second.value.item() == 1


@pytest.mark.parametrize(
    ("result", "taken"),
    [
        ((1, (2.0, "a")), [1, [2.0, "a"]]),
        (range(3), [0, 1, 2]),
        (deque([1]), [1]),
        ({8, 1}, Special("a set", [1, 8])),
        (frozenset("ba"), Special("a set", ["a", "b"])),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict({("a", 1): 2}), {("a", 1): 2}),
        ({5: 1}, {5: 1}),
        (np.float64(2.5), 2.5),
        (np.bool_(True), True),
        (Fraction(1, 2), 0.5),
        (torch.float16, Special("a torch.dtype", "torch.float16")),
        (b"a", Special("bytes", "a")),
        (torch.Size([2]), [2]),
    ],
)
def test_plain_values_are_accepted(result: Any, taken: Any) -> None:
    outcome = outcome_of(lambda: result)
    assert outcome.failure is None
    assert same(outcome.value, taken)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ((x for x in "a"), "returned a generator"),
        (object(), "returned an object"),
        ({}.keys(), "returned a dict_keys"),
        (torch.eye(2).to_sparse(), "returned a sparse_coo tensor"),
        (np.array([object()]), "returned an array of object"),
        ({frozenset(): 1}, "returned a dict with a key that is not plain data: a frozenset"),
        (type("", (), {})(), "returned a , "),
    ],
)
def test_values_that_are_not_plain_are_rejected(result: Any, told: str) -> None:
    failure = outcome_of(lambda: result).failure
    assert failure is not None
    assert failure.kind == "NotPlainError"
    assert failure.message.startswith(told)


def test_a_list_that_contains_itself_is_rejected() -> None:
    endless: list[Any] = []
    endless.append(endless)
    failure = outcome_of(lambda: endless).failure
    assert failure is not None
    assert failure.kind == "RecursionError"


def test_a_tensor_subclass_cannot_change_the_comparison() -> None:
    class Agreeable(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.ones(()).bool()

    value = to_plain(torch.zeros(2).as_subclass(Agreeable))
    assert type(value) is Tensor
    assert difference(torch.ones(2), value) is not None


def test_both_parts_of_complex_results_are_compared() -> None:
    turned = torch.tensor([1 + 1j, 2 + 2j])
    assert difference(turned, to_plain(turned.conj().conj())) is None
    told = difference(turned, to_plain(turned.conj()))
    assert told is not None
    assert told.endswith("at [1]: expected 2+2j, yours 2-2j")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e23, "1e+23"),
        ([0.1, 2], "[0.1, 2]"),
        ((1,), "(1,)"),
        ({"w": torch.ones(1)}, "{'w': tensor([1.])}"),
        (torch.tensor(0.1), "tensor(0.1)"),
        (torch.tensor([[1.5, -2.0]]), "tensor([[1.5, -2.]])"),
        ([torch.zeros(9), 1], "[a float32 tensor of shape (9,), 1]"),
        ([0] * 100, "a list of 100"),
        (dict.fromkeys(range(100), 1), "a dict of 100"),
        ("x" * 1000, "'" + "x" * 78 + "…"),
        ("two\nlines", r"'two\nlines'"),
    ],
)
def test_values_are_formatted_as_code(value: Any, text: str) -> None:
    assert format_value(value) == text
