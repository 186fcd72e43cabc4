"""The exercise on gradients that round to zero."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _lost(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    format = ieee(exponent_bits, mantissa_bits)
    values = [value for value in gradients.flatten().tolist() if value != 0]
    return sum(numerics.round_to(value, format) == 0 for value in values) / len(values)


def _gradients(random: Random, exponent_bits: int, mantissa_bits: int, lost: int) -> Tensor:
    """Zeros, lost and kept gradients of both signs, some in every range that a wrong threshold would move.

    `lost` of each sign are lost, so that the share does not depend on chance: a wrong one must not hit it by luck.
    """
    smallest = ieee(exponent_bits, mantissa_bits).min_subnormal
    ranges = [(0.05, 0.45), (0.55, 0.95), (1.1, 1.9), (1.2 * 2**mantissa_bits, 1.9 * 2**mantissa_bits)]
    values = [0.0] * random.randint(2, 5)
    for (low, high), count in zip(ranges, (lost, 2, 2, 2), strict=True):
        for sign in (1, -1):
            values += [sign * smallest * random.uniform(low, high) for _ in range(count)]
    random.shuffle(values)
    return torch.tensor(values)


def _lost_cases(random: Random) -> list[Case]:
    eight = torch.tensor([[2.0**-25, -(2.0**-24), 0.0, 1.01 * 2.0**-25], [-2.0, -(2.0**-25), 1.0, 3.0]])
    cases = [
        case("a matrix", eight, *widths("fp16")),
        case("other formats", eight * 2.0**8, *widths("e5m2")),
        case("other formats", eight * 2.0**15, 4, 3),
        case("other precisions", (eight * 2.0**8).half(), *widths("e5m2")),
        case("other precisions", (eight * 2.0**-109).bfloat16(), *widths("bf16")),
        case("other precisions", torch.tensor([2.0**-150, 1.1 * 2.0**-150, 1.0], dtype=torch.float64), *widths("fp32")),
        case("all or nothing", torch.tensor([1e-9, -1e-12]), *widths("fp16")),
        case("all or nothing", torch.tensor([1.0]), *widths("fp16")),
        case("all or nothing", torch.tensor([[[-1e-8]]]), *widths("fp16")),
    ]
    formats = [(widths("fp16"), 2), (widths("e5m2"), 3), ((6, 5), 4)]
    return cases + [
        case("gradients of many sizes", _gradients(random, *shape, lost), *shape) for shape, lost in formats
    ]


_SIX = torch.tensor([1e-3, -2e-6, 7e-8, -4e-8, 2e-8, 0.0])
_HALF = 2.0**-25
"""Half the smallest subnormal of fp16."""

lost_to_underflow = Exercise(
    "lost_to_underflow",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_lost,
    tolerance=Tolerance(2.0**-23),  # a share in float32 is right too
    cases=[
        case("six gradients in fp16", _SIX, *widths("fp16")),
        case("the same in bf16", _SIX, *widths("bf16")),
        case("the same, 1024 times larger", _SIX * 1024, *widths("fp16")),
        case("ties, just above and twice as large", torch.tensor([_HALF, -_HALF, 1.001 * _HALF, 2 * _HALF]), 5, 10),
    ],
    hidden_cases=_lost_cases,
    hints=[
        "Which numbers round to zero? Those at most half as large as the smallest subnormal.",
        "The smallest subnormal is 2^(1 − bias − M): 5.96e-8 in fp16.",
        "Count among the values that are not zero to begin with: those had something to lose.",
    ],
)


def _share(lost: Tensor) -> float:
    return lost.double().mean().item()


def _smallest(exponent_bits: int, mantissa_bits: int) -> float:
    return ieee(exponent_bits, mantissa_bits).min_subnormal


@lost_to_underflow.misconception(
    "You count everything below the smallest normal number. Subnormals are coarse but not zero: they are not lost."
)
def below_normal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients[gradients != 0].abs() < ieee(exponent_bits, mantissa_bits).min_normal)


@lost_to_underflow.misconception(
    "A value between half the smallest subnormal and the whole of it is rounded up, not lost."
)
def below_subnormal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients[gradients != 0].abs() < _smallest(exponent_bits, mantissa_bits))


@lost_to_underflow.misconception(
    "You keep what is exactly half the smallest subnormal. That is a tie, and zero is the even one of the two."
)
def ties_kept(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients[gradients != 0].double().abs() < _smallest(exponent_bits, mantissa_bits) / 2)


@lost_to_underflow.misconception("You count gradients that were zero from the start: those have nothing to lose.")
def zeros_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients.double().abs() <= _smallest(exponent_bits, mantissa_bits) / 2)


@lost_to_underflow.misconception(
    "You divide the number of lost gradients by the number of all. Those that were zero from the start are no part "
    "of it."
)
def share_of_all(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    lost = gradients.double().abs() <= _smallest(exponent_bits, mantissa_bits) / 2
    return _share(lost & (gradients != 0))


@lost_to_underflow.misconception("You count every negative gradient as lost: compare its size, not its value.")
def negative_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients[gradients != 0].double() <= _smallest(exponent_bits, mantissa_bits) / 2)


@lost_to_underflow.variant
def counted_in_a_loop(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    lost = nonzero = 0
    for value in gradients.reshape(-1).tolist():
        if value:
            nonzero += 1
            lost += abs(value) * 2.0 ** (2 ** (exponent_bits - 1) - 2 + mantissa_bits) <= 0.5
    return lost / nonzero


@lost_to_underflow.variant
def in_float32(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> Any:
    bias = 2 ** (exponent_bits - 1) - 1
    steps = gradients.double() / 2.0 ** (1 - bias - mantissa_bits)
    lost = (steps.round() == 0) & (gradients != 0)
    return lost.float().sum() / torch.count_nonzero(gradients)


@lost_to_underflow.variant
def with_numpy(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    values = np.array(gradients.double())
    lost = np.rint(values * 2.0 ** (2 ** (exponent_bits - 1) - 2) * 2.0**mantissa_bits) == 0
    return 1 - np.count_nonzero(~lost) / np.count_nonzero(values)


@lost_to_underflow.variant
def as_a_fraction(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> Fraction:
    kept = [x for x in gradients.flatten() if abs(x.item()) > 0.5 ** (2 ** (exponent_bits - 1) - 1 + mantissa_bits)]
    return 1 - Fraction(len(kept), int((gradients != 0).sum()))
