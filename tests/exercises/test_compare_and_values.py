"""The first difference between two values is described in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from lmcourse.exercises.compare import EXACT, Tolerance, difference, equal
from lmcourse.exercises.values import same, to_plain, type_phrase

ONE = torch.tensor([1.0])


@pytest.mark.parametrize(
    ("expected", "received"),
    [
        (3.0, 3),
        (3, 3.0),
        (3, torch.tensor(3.0)),
        (torch.tensor(3), 3.0),
        (torch.tensor(0.1), 0.1),
        (torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64)),
        (torch.tensor(True), True),
        (math.nan, math.nan),
        (math.inf, math.inf),
        ("yes", "yes"),
        (True, True),
        (True, torch.tensor(True)),
        (None, None),
        ([1, [2.0]], [1, [2]]),
        ({"MB": 1.0}, {"MB": 1}),
        (1.0, 1.0 + 1e-12),
        (2**31, 2.0**31),
        (10**400, 10**400),
        (0.1, to_plain(np.float32(0.1))),
        (ONE, ONE + 1e-6),
        (ONE.double(), ONE.double() + 1e-11),
        (torch.tensor([math.nan, math.inf]), torch.tensor([math.nan, math.inf])),
        (torch.tensor([True, False]), torch.tensor([True, False])),
        (ONE.to(torch.float8_e4m3fn), ONE.to(torch.float8_e4m3fn)),
    ],
)
def test_values_within_the_tolerance_are_equal(expected: Any, received: Any) -> None:
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
        (3, 3 + 1e-13, "expected 3, yours 3.0000000000001"),
        (3, torch.tensor(3.0000005), "expected 3, yours 3.000000"),
        (torch.tensor(3), 3.5, "expected 3, yours 3.5"),
        (torch.tensor(1), True, "expected a number, yours is a bool"),
        (torch.tensor(3.0), ONE, "expected a tensor of one number, yours is a tensor of shape (1,): `.squeeze()`"),
        (3.0, None, "expected a number, yours is None"),
        (3.0, torch.tensor([3.0]), "`.item()` takes the number out"),
        (3.0, torch.zeros(2), "expected a number, yours is a tensor of shape (2,)"),
        (3.0, torch.tensor(3.1), "expected 3.0, yours 3.0999"),
        (math.inf, -math.inf, "expected inf, yours -inf"),
        (math.nan, 0.0, "expected nan, yours 0.0"),
        ([1, 2], [1, 3], "item 1: expected 2, yours 3"),
        ([1, 2], [1], "expected 2 items, yours has 1"),
        ([1, 2], 1, "expected a list of 2, yours is an int"),
        (
            [1, 2],
            torch.tensor([1, 2]),
            "expected a list of 2, yours is a tensor of shape (2,): `.tolist()` converts it",
        ),
        ({"a": 1}, {"b": 1}, "expected a dict with keys ['a']: key 'a' is missing"),
        ({"a": 1}, {"a": 2}, "'a': expected 1, yours 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "there should be no key 'b'"),
        (to_plain((1, 2)), 3, "expected a tuple of 2, yours is an int"),
        ({"a": [1]}, [1], "expected a dict with keys ['a'], yours is a list or tuple"),
        (ONE, 1.0, "expected a tensor of shape (1,), yours is a float"),
        (torch.ones(2, 3), torch.ones(3, 2), "the last two axes are swapped"),
        (ONE, ONE.half(), "expected dtype float32, yours is float16"),
        (ONE, ONE + 1e-4, "largest difference 0.0001 at [0]: expected 1, yours 1.0001"),
        (ONE.double(), ONE.double() + 1e-7, "largest difference 1e-07 at [0]"),
        (torch.zeros(2, 2), torch.tensor([[0, 0], [0, 9.0]]), "at [1, 1]: expected 0, yours 9"),
        (torch.zeros(2), torch.tensor([1.0, math.nan]), "2 of 2 differ; at [1]: expected 0, yours nan"),
        (torch.tensor([True]), torch.tensor([False]), "expected True, yours False"),
        (torch.tensor([2**40]), torch.tensor([2**40 + 1]), "expected 1099511627776, yours 1099511627777"),
        (torch.tensor([1000.0]), torch.tensor([1000.002]), "expected 1000, yours 1000.002"),
        (torch.zeros(2, 3, 4), torch.zeros(3, 2, 4), "yours is (3, 2, 4): axes 0 and 1 are swapped"),
        (torch.zeros(2, 1), torch.zeros(2), "expected shape (2, 1), yours is (2,)"),
        ({1: 2}, {1: 2, (3, 4): 5}, "there should be no key (3, 4)"),
        ({"a": [1]}, {"a": [2]}, "'a': item 0: expected 1, yours 2"),
        (2**60, 2**60 + 1, "expected 1152921504606846976, yours 1152921504606846977"),
        (10**400, 1.0, "yours 1.0"),
        (1.0, 10**400, "expected 1.0"),
        (2, to_plain(np.float32(2 + 1e-6)), "expected 2, yours 2.0000009536743164"),
        (0.1, to_plain(np.float32(0.1001)), "expected 0.1"),
    ],
)
def test_the_first_difference_is_described_in_one_line(expected: Any, received: Any, told: str) -> None:
    line = difference(expected, received)
    assert line is not None
    assert told in line
    assert "\n" not in line
    assert not equal(expected, received)


def test_exact_distinguishes_the_sign_of_zero() -> None:
    assert difference(0.0, -0.0) is None
    assert difference(0.0, -0.0, EXACT) == "expected 0.0, yours -0.0"
    assert equal([{"a": 0.0}], [{"a": -0.0}])
    assert not equal([{"a": 0.0}], [{"a": -0.0}], EXACT)
    assert difference(torch.zeros(1), -torch.zeros(1), EXACT) is not None
    assert difference(1.0, 1.0 + 1e-15, EXACT) is not None
    assert difference(-ONE * math.nan, ONE * math.nan, EXACT) is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_tolerance_allows_one_rounding_error(dtype: torch.dtype) -> None:
    step = torch.finfo(dtype).eps
    expected = torch.full((3,), 8.0, dtype=torch.float64)
    assert difference(expected.to(dtype), (expected * (1 + step)).to(dtype)) is None
    assert difference(expected.to(dtype), (expected * (1 + max(400 * step, 1e-8))).to(dtype)) is not None
    assert difference(expected, expected * 1.1, Tolerance(0.2)) is None


def test_a_difference_can_hide_the_expected_value() -> None:
    assert difference(42, 41, reveal=False) == "41 is not it"
    assert "42" not in str(difference([42], [41], reveal=False))


def test_long_doubles_are_compared_as_numbers() -> None:
    plain = to_plain([np.longdouble(1.5), np.clongdouble(1 + 2j)])
    assert plain == [1.5, 1 + 2j]
    assert [type(value) for value in plain] == [float, complex]


KINDS = [
    ({2, 1}, "a set"),
    (np.array([1.0]), "a NumPy array"),
    (b"a", "bytes"),
    (torch.float16, "a torch.dtype"),
]


@pytest.mark.parametrize(("value", "kind"), KINDS, ids=lambda x: str(x))
def test_a_result_that_is_not_plain_data_keeps_its_kind(value: Any, kind: str) -> None:
    plain = to_plain([value])[0]
    assert type_phrase(plain) == kind
    assert same(plain, to_plain(value))
    for asked in (ONE, [1, 2], {"a": 1}, 1.0, "a"):
        told = difference(asked, plain)
        assert told is not None
        assert f"yours is {kind}" in told
        assert not equal([asked], [plain])
        assert not same(asked, plain)
    assert difference(plain, to_plain(value)) is None
    assert difference(plain, [1, 2]) == f"expected {kind}, yours is a list or tuple"


def test_special_results_with_different_values_differ() -> None:
    assert (
        difference(to_plain(torch.float16), to_plain(torch.float32))
        == "expected 'torch.float16', yours 'torch.float32'"
    )
    assert difference(to_plain({1}), to_plain({2})) is not None
    assert difference(to_plain(np.ones(2)), to_plain(np.zeros(2))) is not None


def test_same_compares_bit_by_bit() -> None:
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
