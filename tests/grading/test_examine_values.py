"""A right result of an unusual type earns in a grade what it earns in the notebook."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from lmcourse.exercises import Case, Exercise, check_exercise, value_exercise
from lmcourse.exercises.compare import difference
from lmcourse.exercises.values import same, to_plain
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import DTYPES, encode
from tests.grading.examining import ForkLauncher, reports_of

IMPORTS = """
import math, numpy as np, torch
from collections import Counter, OrderedDict, UserDict, namedtuple
from decimal import Decimal
from fractions import Fraction
"""

RIGHT: dict[str, tuple[Any, list[str]]] = {
    "a whole number": (
        163,
        [
            *("163.0", "Fraction(163)", "Fraction(326, 2)", "Decimal(163)", "Decimal('163.0')", "torch.tensor(163)"),
            *("torch.tensor(163.0)", "torch.tensor(163, dtype=torch.uint16)", "torch.tensor(163.0, dtype=torch.half)"),
            *(
                "np.int8(81) + np.int64(82)",
                "np.uint64(163)",
                "np.float16(163)",
                "np.longdouble(163)",
                "np.float64(163)",
            ),
            *("np.array(163)", "np.prod([163, 1])", "torch.tensor(163.0, requires_grad=True)", "math.prod([163, 1])"),
        ],
    ),
    "a fraction": (
        0.2,
        ["Fraction(1, 5)", "Decimal('0.2')", "torch.tensor(0.2)", "np.float64(0.2)", "np.longdouble('0.2')", "1 - 0.8"],
    ),
    "large": (
        10**30,
        ["Fraction(10**30)", "1e30", "Decimal('1e30')", "torch.tensor(1e30, dtype=torch.double)", "np.float64(1e30)"],
    ),
    "not finite": (math.inf, ["Decimal('Infinity')", "np.inf", "torch.tensor(math.inf)", "np.float32('inf')"]),
    "not a number": (math.nan, ["Decimal('NaN')", "np.nan", "torch.tensor(math.nan)", "-np.float16('nan')"]),
    "numbers": (
        [1, 2],
        [
            *("(1, 2)", "range(1, 3)", "{2, 1}", "[Fraction(1), Decimal(2)]", "[np.int8(1), torch.tensor(2)]"),
            *("namedtuple('P', 'a b')(1, 2)", "dict.fromkeys([1, 2]).keys() and [*{1: 0, 2: 0}]", "[1.0, True + 1]"),
        ],
    ),
    "a dict": ({"a": 1}, ["Counter('a')", "OrderedDict(a=1)", "UserDict(a=1)", "dict(a=Fraction(1))", "{'a': 1.0}"]),
    "a tensor of whole numbers": (
        torch.tensor([1, 2]),
        [
            *(f"torch.tensor([1, 2], dtype=torch.{name})" for name in ("int8", "int32", "uint8", "uint16", "uint64")),
            *("np.array([1, 2])", "np.array([1, 2], dtype=np.uint64)", "torch.tensor([2, 1]).flip(0)"),
            *("torch.tensor([[1, 2]] * 3).T[:, 1]", "torch.nn.Parameter(torch.tensor([1, 2]), requires_grad=False)"),
        ],
    ),
    "a tensor": (
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        [
            *("torch.tensor([[1.0, 3.0], [2.0, 4.0]]).T", "torch.nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))"),
            *("np.array([[1, 2], [3, 4]], dtype=np.float32, order='F')", "-torch.tensor([[-1.0, -2.0], [-3.0, -4.0]])"),
            "torch.view_as_real(torch.tensor([1 - 2j, 3 - 4j]).conj().resolve_conj())",
        ],
    ),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right_in_the_notebook_is_right_in_a_grade(kind: str) -> None:
    expected, expressions = RIGHT[kind]
    names = [f"f{number}" for number in range(len(expressions))]
    exercises = [
        Exercise(name, 2, 1, 1, reference=lambda: expected, cases=[Case("one"), Case("two")]) for name in names
    ]
    cells = [f"def {name}():\n    return {expression}" for name, expression in zip(names, expressions, strict=True)]
    notebook: dict[str, Callable[..., Any]] = {}
    exec("\n".join([IMPORTS, *cells]), notebook)
    here = {exercise.name: check_exercise(exercise, notebook[exercise.name]).points for exercise in exercises}
    there = reports_of([IMPORTS, *cells], exercises, launcher=ForkLauncher())
    assert here == dict.fromkeys(names, 2.0)
    assert {name: report.points for name, report in there.items()} == here


@pytest.mark.parametrize("expression", RIGHT["a whole number"][1])
def test_so_are_values(expression: str) -> None:
    exercise = value_exercise("v", points=1, minutes=1, difficulty=1, reference=lambda: 163)
    assert reports_of([IMPORTS, f"v = {expression}"], [exercise], launcher=ForkLauncher())["v"].points == 1


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_arrives_as_it_was(name: str) -> None:
    numbers = torch.tensor([1.0, 0.0, 2.0]).to(DTYPES[name])
    assert same(decode(encode(numbers)), numbers)


def test_the_long_floats_of_numpy_are_numbers() -> None:
    assert to_plain([np.longdouble("0.5"), np.clongdouble(1 + 2j), Fraction(4, 2), Decimal("0.5")]) == [
        0.5,
        1 + 2j,
        2,
        0.5,
    ]


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_integers_that_differ_are_told_whatever_their_width(dtype: torch.dtype) -> None:
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3], dtype=dtype)) is not None
    assert difference(torch.tensor([1, 2], dtype=dtype), torch.tensor([1, 2], dtype=torch.int8)) is None
    assert difference(torch.tensor([-1]), torch.tensor([2**64 - 1], dtype=torch.uint64)) is not None
