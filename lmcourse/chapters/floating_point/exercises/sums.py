"""Exercises on sums: where a running sum stops growing, and what that does to a dot product."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT, Tolerance
from lmcourse.exercises.exercise import Exercise

# stall_point -----------------------------------------------------------------------------------------------------


def _stall_cases(random: Random) -> list[Case]:
    exact = [numerics.round_to(random.uniform(0.001, 0.9), ieee(5, 10)) for _ in range(3)]
    powers = [2.0 ** random.randint(-8, -1) for _ in range(3)]
    cases = [case("other increments", value, 5, 10) for value in exact]
    cases += [case("increments that are powers of two", value, *widths("bf16")) for value in powers]
    return [*cases, case("other formats", 0.375, *widths("e5m2")), case("other formats", 1.0, *widths("fp32"))]


stall_point = Exercise(
    "stall_point",
    points=3,
    minutes=6,
    difficulty=2,
    reference=lambda increment, e, m: numerics.stall_point(increment, ieee(e, m)),
    tolerance=EXACT,
    cases=[
        case("0.01 in bf16", numerics.round_to(0.01, ieee(8, 7)), *widths("bf16")),
        case("0.01 in fp16", numerics.round_to(0.01, ieee(5, 10)), *widths("fp16")),
        case("counting in bf16", 1.0, *widths("bf16")),
        case("0.75 in fp16", 0.75, *widths("fp16")),
    ],
    hidden_cases=_stall_cases,
    hints=[
        "Adding x to s changes nothing when s + x rounds back to s. How small must x be, measured in ulps of s?",
        "Half an ulp or less: a tie goes back to s, because s is a power of two by then and so it is even.",
        "You may walk: try s = 1, 2, 4, … (and ½, ¼, …) for the smallest power of two with ulp(s) / 2 ≥ x. "
        "Or solve for it: 2 ** (ceil(log2(x)) + M + 1).",
    ],
    forbid=["torch", "numpy"],
    seconds=20.0,
)


def _power_above(x: float, shift: int) -> float:
    return 2.0 ** (math.ceil(math.log2(x)) + shift)


@stall_point.misconception(
    "You let the sum stall when the increment is smaller than one ulp. It still moves then: only half an ulp rounds "
    "away."
)
def one_ulp(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _power_above(increment, mantissa_bits)


@stall_point.misconception(
    "Your sum gets past the point where increment = ulp / 2. That is a tie, and s is even: it stays at s."
)
def ties_go_up(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (math.floor(math.log2(increment)) + mantissa_bits + 2)


@stall_point.misconception(
    "increment / ε is a good guess, but gaps change only at powers of two, and half a gap is already lost."
)
def increment_over_epsilon(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return increment * 2.0**mantissa_bits


@stall_point.misconception("That is how many additions it takes, not the sum that they reach.")
def number_of_additions(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return float(math.ceil(_power_above(increment, mantissa_bits + 1) / increment))


@stall_point.misconception("That is the largest finite number. The sum stops growing long before it overflows.")
def at_overflow(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return ieee(exponent_bits, mantissa_bits).max_finite


# dot_product_error -----------------------------------------------------------------------------------------------


def _dot(a: Tensor, b: Tensor, product: torch.dtype, total: torch.dtype) -> Tensor:
    running = torch.zeros((), dtype=total)
    for x, y in zip(a.to(product), b.to(product), strict=True):
        running = running + (x * y).to(total)
    return running


def _dot_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    dtype = getattr(torch, accumulator)
    return abs(_dot(a, b, dtype, dtype).item() - (a.double() * b.double()).sum().item())


def _vector(random: Random, size: int, scale: float = 1.0) -> Tensor:
    return torch.tensor([random.uniform(0.1, 1.0) * scale for _ in range(size)]).half()


def _dot_cases(random: Random) -> list[Case]:
    cases = []
    for size in (33, 100, 257):
        a, b = _vector(random, size), _vector(random, size)
        cases += [case("longer vectors", a, b, "float16"), case("longer vectors", a, -b, "float32")]
    return [*cases, case("sums that cancel", torch.cat([a, a]), torch.cat([b, -b]), "float16")]


_FIXED = Random(2)
_A, _B = _vector(_FIXED, 64), _vector(_FIXED, 64)

dot_product_error = Exercise(
    "dot_product_error",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_dot_error,
    tolerance=Tolerance(1e-6, 1e-12),
    cases=[
        case("three numbers, summed in fp16", *(torch.tensor([0.1, 0.2, 0.3]).half(),) * 2, "float16"),
        case("64 numbers, summed in fp16", _A, _B, "float16"),
        case("64 numbers, summed in fp32", _A, _B, "float32"),
        case("64 negative products, summed in fp16", _A, -_B, "float16"),
    ],
    hidden_cases=_dot_cases,
    hints=[
        "The exact value first: turn both vectors into float64, where these products and sums lose nothing that "
        "matters.",
        "Then the slow way: a loop with a running total that is a tensor of the accumulator's dtype.",
        "getattr(torch, 'float16') is torch.float16. Cast a and b to it before multiplying; a product of two fp16 "
        "tensors "
        "is rounded to fp16 by torch itself.",
    ],
)


@dot_product_error.misconception("You sum in full precision and round once at the end. Round after every addition.")
def rounded_once(a: Tensor, b: Tensor, accumulator: str) -> float:
    exact = (a.double() * b.double()).sum()
    return abs(exact.to(getattr(torch, accumulator)).item() - exact.item())


@dot_product_error.misconception("Your total is float32 whatever was asked for: the accumulator's dtype is not used.")
def always_float32(a: Tensor, b: Tensor, accumulator: str) -> float:
    return _dot_error(a, b, "float32")


@dot_product_error.misconception(
    "The products are rounded to fp16 before they reach a float32 total: cast before you multiply."
)
def products_in_half(a: Tensor, b: Tensor, accumulator: str) -> float:
    total = _dot(a, b, torch.float16, getattr(torch, accumulator))
    return abs(total.item() - (a.double() * b.double()).sum().item())


@dot_product_error.misconception("An error has no sign here: take its absolute value.")
def signed_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    dtype = getattr(torch, accumulator)
    return _dot(a, b, dtype, dtype).item() - (a.double() * b.double()).sum().item()


@dot_product_error.misconception(
    "You divide by the exact value: that is the relative error, and the absolute one is asked for."
)
def relative_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    exact = abs((a.double() * b.double()).sum().item())
    return _dot_error(a, b, accumulator) / exact if exact else math.inf
