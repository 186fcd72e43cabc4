"""The exercise on rounding to the nearest numbers of a format."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.floating_point.exercises.formats import BIAS, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise


def number_by_number(x: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    results = []
    for value in x.flatten().tolist():
        gap = 2.0 ** (max(math.frexp(value)[1] + 1, 4 - 2 ** (exponent_bits - 1)) - 2 - mantissa_bits)
        size = round(abs(value) / gap) * gap
        results.append(math.copysign(size if size < 2.0 ** (2 ** (exponent_bits - 1)) else math.inf, value))
    return torch.tensor(results, dtype=x.dtype).reshape(x.shape)


def _case(name: str, format: str | tuple[int, int], *values: float) -> Case:
    return case(
        name, torch.tensor(values, dtype=torch.float64), *(widths(format) if isinstance(format, str) else format)
    )


def _round_cases(random: Random) -> list[Case]:
    steps = [128 + 2 * random.randrange(64) + fraction for fraction in (0.75, 1.75, 0.5, 1.5)]
    drawn = [(-1) ** place * step * 2.0 ** random.randint(-20, 20) for place, step in enumerate(steps)]
    subnormal = [steps * 2.0**-24 for steps in (1, -0.5, 0.5 + 2.0**-20, 1.5, 2.5, -51, 1023.5)]
    wide = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [
        _case("ties", "bf16", 2 + 2.0**-7, -2 - 3 * 2.0**-7, 0.5 + 5 * 2.0**-10, 1 + 2.0**-8 + 2.0**-30),
        _case("below the smallest normal", "fp16", *subnormal),
        _case("the sign of zero", "fp16", 0.0, -0.0, -1e-8, -5e-324),
        _case("too large", "fp16", 65520.0, -65520.0, -70000.0, 1e60),
        _case("almost too large", "fp16", 65519.99, -65519.99, 65504.0),
        _case("almost too large", "e5m2", 61439.9),
        _case("rounds up to a power of two", "bf16", 1.9999, -0.4999),
        _case("formats nobody has built", (3, 4), 0.1, -0.26, 1.03125, 15.7, 15.75),
        _case("formats nobody has built", (6, 9), 1 / 3),
        _case("wide formats", "fp32", 1 / 3, -(2.0**-149) * 2.6),
        _case("any magnitude", "bf16", *drawn),
        case("other shapes", 1e-3 * wide, *widths("e5m2")),
        case("other shapes", torch.empty(0, 3, dtype=torch.float64), *widths("fp16")),
    ]


round_to = Exercise(
    "round_to",
    points=3,
    minutes=12,
    difficulty=3,
    reference=number_by_number,
    tolerance=EXACT,
    cases=[
        _case("0.1 in fp16", "fp16", 0.1),
        case("π in bf16", torch.tensor(math.pi, dtype=torch.float64), *widths("bf16")),
        _case("a negative number", "bf16", -0.3),
        _case("a tie, the lower one is even", "bf16", 1 + 2.0**-8),
        _case("a tie, the upper one is even", "bf16", 1 + 3 * 2.0**-8),
        _case("just above a tie", "bf16", 1 + 2.0**-8 + 2.0**-40),
        _case("a third in fp32", "fp32", 1 / 3),
        _case("large and small ones", "fp16", 3000.7, 0.3, -5.001),
        case("a matrix", torch.tensor([[0.7, -2.3], [40.1, 0.0]], dtype=torch.float64), *widths("e5m2")),
        _case("a learning rate, subnormal in fp16", "fp16", 3e-6),
        _case("a subnormal of bf16", "bf16", 3.2e-40),
        _case("too small for bf16", "bf16", -1e-41),
        _case("too large for fp16", "fp16", 70000.0, 1e60),
        _case("too far below zero for fp16", "fp16", -70000.0),
        _case("just above the largest fp16 number", "fp16", 65519.0),
        _case("half a step above the largest fp16 number", "fp16", 65520.0),
        _case("half a step below the largest fp16 number", "fp16", 65488.0),
        _case("zero, with its sign", "fp16", 0.0, -0.0),
    ],
    hidden_cases=_round_cases,
    hints=[
        "Measure x in steps of its gap: x / step. Then round that to whole numbers. Each number has its own gap.",
        "x.frexp().exponent is one more than the e of the formula, and clamp(min=1 − bias) keeps the gap of the "
        "subnormals. torch.round already goes to the even neighbour on a tie.",
        "If the result is larger than the largest finite number, it is infinity, with the sign of x: torch.where.",
    ],
    forbid=[
        *("numpy", "mpmath", "struct", ".half", ".bfloat16", "torch.quantize_per_tensor"),
        *("torch.float16", "torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2", "torch.HalfTensor"),
    ],
)


@round_to.variant
def in_steps_of_the_gap(x: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    bias = 2 ** (exponent_bits - 1) - 1
    lowest, largest = 1 - bias, (2 - 2.0**-mantissa_bits) * 2.0**bias
    exponent = torch.frexp(x).exponent - 1
    step = 2.0 ** (exponent.clamp(min=lowest) - mantissa_bits).double()
    rounded = torch.round(x / step) * step
    return torch.where(rounded.abs() <= largest, rounded, torch.copysign(torch.tensor(math.inf), x))


_INFINITE = "torch.where(rounded.abs() <= largest, rounded, torch.copysign(torch.tensor(math.inf), x))"
round_to.slips(
    in_steps_of_the_gap,
    {
        "torch.round( → torch.trunc(": "You cut off the extra bits. Round to the nearest value, up or down.",
        "torch.round(x / step) → torch.floor(x.abs() / step + 0.5).copysign(x)": "You round ties away from zero, as at "
        "school. In IEEE arithmetic a tie goes to the even neighbour.",
        "torch.round(x / step) → torch.floor(x / step + 0.5)": "You round ties up, as at school. In IEEE arithmetic a "
        "tie goes to the even neighbour.",
        "torch.round(x / step) → torch.ceil(x.abs() / step - 0.5).copysign(x)": "You round ties towards zero. In IEEE "
        "arithmetic a tie goes to the even neighbour, up or down.",
        "torch.round( → torch.floor(": "You always round down; for negative numbers that is away from zero. Round to "
        "the nearest.",
        f"{_INFINITE} → rounded": "There is no number that large in this format: beyond the largest finite one comes "
        "infinity.",
        f"{_INFINITE} → rounded.clamp(-largest, largest)": "You stop at the largest finite number. Rounding to nearest "
        "overflows to infinity.",
        "* step\n → * step * (x.abs() >= 2.0**lowest)\n": "You turn everything below the smallest normal number into "
        "zero. Subnormals fill that gap: fp16 still has 1024 steps there.",
        "math.inf), x)) → math.inf), x)) + 0.0": "You lose the sign of zero: a negative number that rounds to zero "
        "becomes -0.0.",
        "rounded.abs() <= largest → x.abs() <= largest": "You call everything infinite that is larger than the largest "
        "finite number. Round first: a number less than half a step above it is rounded down.",
        "rounded.abs() <= largest, rounded → x.abs() <= largest + step / 2, rounded.clamp(-largest, largest)": "Half a "
        "step above the largest finite number, you round down. That is a tie, and its even neighbour would be the next "
        "power of two, so it rounds to infinity.",
        "exponent - 1 → exponent": "You measure x in steps of the gap above the next power of two. The exponent of "
        "frexp is one more than that of 1.f · 2^e.",
        "frexp(x) → frexp(x.abs().max())": "You round all numbers in steps of the largest one's gap. Each number has "
        "its own gap.",
        "torch.copysign(torch.tensor(math.inf), x) → math.inf": "Your infinities are all positive. A number too far "
        "below zero becomes −∞.",
        "exponent.clamp(min=lowest) → exponent": "Your gap keeps shrinking below the smallest normal number. All "
        "subnormals have the same gap.",
        "bias = 2 ** (exponent_bits - 1) - 1 → bias = 2 ** (exponent_bits - 1)": BIAS,
        "lowest, largest = 1 - bias → lowest, largest = -bias": "Your subnormals have half their gap: their exponent "
        "is 1 − bias, not −bias.",
        ").double() → ) ;; rounded.abs() <= largest, rounded, torch.copysign(torch.tensor(math.inf), x) → "
        "rounded.abs() > largest, torch.copysign(torch.tensor(math.inf), x), rounded": "You return NaN for "
        "1e60. A step in float32 is infinite there, and 0 times infinity is NaN: compute in float64.",
        "torch.round(x / step) * step → torch.round(x.abs() / step) * step * torch.where(x < 0, -1.0, 1.0)": "You lose "
        "the sign of -0.0, because it is not below 0. torch.copysign takes the sign of every number.",
        "x / step → x.float() / step": "You round twice, first to float32 and then to the format: a number just above "
        "a tie becomes the tie. Stay in float64.",
    },
)
