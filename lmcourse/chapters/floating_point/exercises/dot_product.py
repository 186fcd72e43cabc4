"""The exercise on the digits that a dot product loses in its accumulator."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _dot_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    running = torch.zeros((), dtype=getattr(torch, accumulator))
    for x, y in zip(a.to(running.dtype), b.to(running.dtype), strict=True):
        running = running + x * y
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))
    return float(abs(Fraction(running.item()) - exact)) if running.isfinite() else math.inf


def _vector(random: Random, size: int) -> Tensor:
    return torch.tensor([random.uniform(0.1, 1.0) for _ in range(size)]).half()


def _half(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float16)


_FIXED = Random(2)
_A, _B = _vector(_FIXED, 64), _vector(_FIXED, 64)
_C, _D = _vector(_FIXED, 257), _vector(_FIXED, 257)


def _dot_cases(random: Random) -> list[Case]:
    large = [2048.0, *[random.uniform(0.1, 0.45) for _ in range(random.randint(20, 60))]]
    ones = torch.ones(len(large)).half()
    return [
        case("one product, or none", _half(0.1), _half(0.3), "float16"),
        case("one product, or none", _half(0.1), _half(-0.3), "float32"),
        case("one product, or none", _half(), _half(), "float16"),
        case("sums that cancel", torch.cat([_A, -_A]), torch.cat([_B, _B]), "float16"),
        case("sums that cancel", _half(2048, 1, -2048), _half(1, 1, 1), "float16"),
        case("too large or too small for fp16", _half(300, 0.1), _half(300, 0.1), "float16"),
        case("too large or too small for fp16", _half(300, 0.1), _half(300, 0.1), "float32"),
        case("too large or too small for fp16", _half(1e-4, 1e-4), _half(1e-4, 1e-4), "float16"),
        case("longer vectors", _C, _D, "float16"),
        case("longer vectors", _C, -_D, "float16"),
        case("longer vectors", _C, _D, "float32"),
        case("longer vectors", -_C, _D, "float32"),
        case("a large number first", _half(*large), ones, "float16"),
        case("a large number first", -ones, _half(*large), "float16"),
    ]


dot_product_error = Exercise(
    "dot_product_error",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_dot_error,
    tolerance=Tolerance(1e-12),  # products of fp16 numbers and their sums are exact in float64
    cases=[
        case("three numbers, summed in fp16", *(_half(0.1, 0.2, 0.3),) * 2, "float16"),
        case("a large number first", _half(2048, 1, 1, 1), _half(1, 1, 1, 1), "float16"),
        case("64 numbers, summed in fp16", _A, _B, "float16"),
        case("64 numbers, summed in fp32", _A, _B, "float32"),
        case("64 negative products, summed in fp16", _A, -_B, "float16"),
        case("16 numbers, summed in fp16", _A[:16], _B[:16], "float16"),
        case("no product at all", _half(), _half(), "float16"),
    ],
    hidden_cases=_dot_cases,
    hints=[
        "First the exact value: convert both vectors to float64, where these products and sums lose almost nothing.",
        "Then the slow way: a loop with a running total that is a tensor of the accumulator's dtype.",
        "getattr(torch, 'float16') is torch.float16. Cast a and b to it before multiplying; a product of two fp16 "
        "tensors is rounded to fp16 by torch itself.",
    ],
)

dot_product_error.equivalent_mutant(
    "return abs(total.item() - exact.item()) → return abs(exact.item() - total.item())",
    "A distance is the same in both directions.",
)


@dot_product_error.variant
def one_after_the_other(a: Tensor, b: Tensor, accumulator: str) -> float:
    dtype = getattr(torch, accumulator)
    total = torch.zeros((), dtype=dtype)
    for x, y in zip(a.to(dtype), b.to(dtype), strict=True):
        total = total + x * y
    exact = (a.double() * b.double()).sum()
    return abs(total.item() - exact.item())


dot_product_error.slips(
    one_after_the_other,
    {
        "(total.item() → (exact.to(dtype).item()": "You leave the adding to a sum that rounds only once, or adds in "
        "another order. Add the products one after the other, and round after every addition.",
        "getattr(torch, accumulator) → torch.float32": "Your total is always float32. Use the accumulator's dtype.",
        "a.to(dtype), b.to(dtype) → a, b": "The products are rounded to fp16 before they reach a float32 total: cast "
        "before you multiply.",
        "a.to(dtype), b.to(dtype) → a.double(), b.double() ;; total + x * y → (total + x * "
        "y).to(dtype)": "Your products are exact, and only the sums are rounded. A product of two fp16 numbers is "
        "rounded too: multiply in the accumulator's dtype.",
        "(a.double() * b.double()).sum() → (a * b).double().sum()": "Your exact value is a sum of products that are "
        "already rounded to fp16. Convert `a` and `b` to float64 before you multiply.",
        "a.to(dtype), b.to(dtype) → a.to(dtype).flip(0), b.to(dtype).flip(0)": "You add the products from the last to "
        "the first. Rounded sums depend on the order.",
        "(a.double() * b.double()).sum() → torch.dot(a, b)": "Your exact value is computed in fp16, which rounds it. "
        "Convert `a` and `b` to float64 before you multiply and add.",
        "abs( → (": "An error has no sign here: take its absolute value.",
        "abs(total.item() - exact.item()) → ((total - exact) / exact).abs().item()": "You divide by the exact value, "
        "which gives the relative error. Return the absolute error.",
        "exact.item() → exact.to(dtype)": "You subtract in the accumulator's dtype, so the exact result is rounded to "
        "it first. Take the difference in float64.",
        "dtype=dtype → dtype=torch.float64": "You keep the running total in float64, and only the products are "
        "rounded. Round the total to the accumulator's dtype after every addition.",
        "(a.double() * b.double()).sum() → torch.dot(a.float(), b.float())": "You compute the exact value in float32, "
        "which rounds its sums. Convert to float64 before you multiply and add.",
    },
)
