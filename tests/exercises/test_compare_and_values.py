"""Two values differ in exactly one way, and it is told in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from lmcourse.exercises.compare import EXACT, Tolerance, difference, equal
from lmcourse.exercises.values import NotPlainError, same, to_plain, type_phrase

ONE = torch.tensor([1.0])


@pytest.mark.parametrize(
    ("expected", "received"),
    [
        (3.0, 3),
        (3, 3.0),
        (math.nan, math.nan),
        (math.inf, math.inf),
        ("yes", "yes"),
        (True, True),
        (True, torch.tensor(True)),
        (None, None),
        ([1, [2.0]], [1, [2]]),
        ({"MB": 1.0}, {"MB": 1}),
        (1.0, 1.0 + 1e-12),
        (ONE, ONE + 1e-6),
        (ONE.double(), ONE.double() + 1e-11),
        (torch.tensor([math.nan, math.inf]), torch.tensor([math.nan, math.inf])),
        (torch.tensor([True, False]), torch.tensor([True, False])),
        (ONE.to(torch.float8_e4m3fn), ONE.to(torch.float8_e4m3fn)),
    ],
)
def test_equal_enough(expected: Any, received: Any) -> None:
    assert difference(expected, received) is None
    assert equal(expected, received)


@pytest.mark.parametrize(
    ("expected", "received", "told"),
    [
        (3.0, 4.0, "expected 3.0, yours 4.0"),
        (1.0, 1.0 + 1e-7, "expected 1.0, yours 1.0000001"),
        (3, True, "expected a number, yours is a bool"),
        (True, 1, "expected True, yours 1"),
        (True, torch.tensor(False), "expected True, yours False"),
        (True, torch.tensor([True]), "expected True, yours tensor([True])"),
        (3.0, None, "expected a number, yours is None"),
        (3.0, torch.tensor([3.0]), "`.item()` takes the number out"),
        (3.0, torch.tensor(3.1), "expected 3.0, yours 3.0999"),
        (math.inf, -math.inf, "expected inf, yours -inf"),
        (math.nan, 0.0, "expected nan, yours 0.0"),
        ([1, 2], [1, 3], "item 1: expected 2, yours 3"),
        ([1, 2], [1], "expected 2 items, yours has 1"),
        ([1, 2], 1, "expected a list of 2, yours is an int"),
        ({"a": 1}, {"b": 1}, "expected a dict with keys ['a']: key 'a' is missing"),
        ({"a": 1}, {"a": 2}, "'a': expected 1, yours 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "there should be no key 'b'"),
        ({"a": [1]}, [1], "expected a dict with keys ['a'], yours is a list"),
        (ONE, 1.0, "expected a tensor of shape (1,), yours is a float"),
        (torch.ones(2, 3), torch.ones(3, 2), "the last two axes are swapped"),
        (ONE, ONE.half(), "expected dtype float32, yours is float16"),
        (ONE, ONE + 1e-4, "largest difference 0.0001 at [0]: expected 1, yours 1.0001"),
        (ONE.double(), ONE.double() + 1e-7, "largest difference 1e-07 at [0]"),
        (torch.zeros(2, 2), torch.tensor([[0, 0], [0, 9.0]]), "at [1, 1]: expected 0, yours 9"),
        (torch.zeros(2), torch.tensor([1.0, math.nan]), "2 of 2 differ; at [1]: expected 0, yours nan"),
        (torch.tensor([True]), torch.tensor([False]), "expected True, yours False"),
        (torch.tensor([5]), torch.tensor([6]), "expected 5, yours 6"),
    ],
)
def test_the_difference_in_one_line(expected: Any, received: Any, told: str) -> None:
    line = difference(expected, received)
    assert line is not None
    assert told in line
    assert "\n" not in line
    assert not equal(expected, received)


def test_exact_means_the_sign_of_zero_too() -> None:
    assert difference(0.0, -0.0) is None
    assert difference(0.0, -0.0, EXACT) == "expected 0.0, yours -0.0"
    assert equal([{"a": 0.0}], [{"a": -0.0}])
    assert not equal([{"a": 0.0}], [{"a": -0.0}], EXACT)
    assert difference(torch.zeros(1), -torch.zeros(1), EXACT) is not None
    assert difference(1.0, 1.0 + 1e-15, EXACT) is not None


def test_a_tolerance_of_ones_own() -> None:
    assert difference(100.0, 101.0, Tolerance(0.02)) is None
    assert difference(100.0, 103.0, Tolerance(0.02)) is not None


def test_the_expected_value_can_be_kept_back() -> None:
    assert difference(42, 41, reveal=False) == "41 is not it"
    assert "42" not in str(difference([42], [41], reveal=False))


def test_plain_values_are_copies_without_history() -> None:
    weight = torch.ones(2, requires_grad=True)
    copy = to_plain([weight * 2, np.float32(1.5), np.arange(2), (1, "a"), torch.float16, torch.Size([2])])
    assert copy[0].requires_grad is False
    assert copy[1] == 1.5
    assert type(copy[1]) is float
    assert copy[2].tolist() == [0, 1]
    assert copy[3:] == [[1, "a"], "torch.float16", [2]]
    original = torch.zeros(2)
    view = to_plain(original[:1])
    original[0] = 5
    assert view.item() == 0


def test_long_doubles_are_numbers_although_their_item_is_no_python_number() -> None:
    plain = to_plain([np.longdouble(1.5), np.clongdouble(1 + 2j)])
    assert plain == [1.5, 1 + 2j]
    assert [type(value) for value in plain] == [float, complex]


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(NotPlainError, match="a function"):
        to_plain({"f": test_what_is_no_plain_value_is_refused})


def test_same_is_to_the_bit() -> None:
    nan = torch.tensor([math.nan, 1.0])
    assert same(nan, nan.clone())
    assert not same(torch.zeros(1), -torch.zeros(1))
    assert not same(torch.zeros(1), torch.zeros(1).double())
    assert not same([1, 2], [1])
    assert not same(1, 1.0)


def test_a_single_number_may_have_any_stride() -> None:
    one = torch.arange(24.0).view(2, 12)[:1, 3].clone()
    assert one.stride() == (12,)
    assert same(one, torch.tensor([3.0]))
    assert not same(one, torch.tensor([-3.0]))


def test_kinds_read_well() -> None:
    assert [type_phrase(x) for x in (None, 1, 1.0, ONE)] == ["None", "an int", "a float", "a tensor of shape (1,)"]
