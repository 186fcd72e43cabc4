"""Exercises on the gaps between numbers, on rounding, and on gradients that vanish in a gap."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise

# ulp -------------------------------------------------------------------------------------------------------------


def _ulp_cases(random: Random) -> list[Case]:
    cases = [case("any magnitude", random.uniform(1, 2) * 2.0 ** random.randint(-12, 14), 5, 10) for _ in range(4)]
    cases += [case("negative values", -random.uniform(1, 100), *widths("bf16")) for _ in range(2)]
    cases += [case("powers of two", 2.0 ** random.randint(-20, 20), *widths("fp32")) for _ in range(2)]
    cases += [case("zero and subnormals", value, *widths("e5m2")) for value in (0.0, 2.0**-16, -(2.0**-15))]
    return cases


ulp = Exercise(
    "ulp",
    points=3,
    minutes=7,
    difficulty=2,
    reference=lambda x, e, m: numerics.ulp(x, ieee(e, m)),
    tolerance=EXACT,
    cases=[
        case("one, in bf16", 1.0, *widths("bf16")),
        case("just below two", 1.99, *widths("fp16")),
        case("256, in bf16", 256.0, *widths("bf16")),
        case("a negative number", -3.0, *widths("fp16")),
        case("0.1, in fp32", 0.1, *widths("fp32")),
        case("an fp16 subnormal", 2.0**-20, *widths("fp16")),
        case("zero", 0.0, *widths("fp16")),
    ],
    hidden_cases=_ulp_cases,
    hints=[
        "Between 2^e and 2^(e+1) there are 2^M equal steps. Find e first.",
        "math.frexp(x) gives (f, n) with |x| = f · 2^n and ½ ≤ f < 1, so e = n − 1, exactly.",
        "e never falls below 1 − bias: subnormals share the step of the smallest normal numbers.",
    ],
    forbid=["torch", "numpy", "math.ulp", "math.nextafter"],
)


def _exponent(x: float) -> int:
    return math.frexp(x)[1] - 1 if x else -1074


def _lowest(exponent_bits: int) -> int:
    return 2 - (1 << exponent_bits - 1)


@ulp.misconception("That is the gap at 1, the machine epsilon. The gap doubles with every power of two.")
def epsilon_everywhere(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0**-mantissa_bits


@ulp.misconception(
    "Your gap grows smoothly with x. Real gaps stay equal from one power of two to the next, then double at once."
)
def epsilon_times_x(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return abs(x) * 2.0**-mantissa_bits


@ulp.misconception(
    "Your gap goes on shrinking below the smallest normal number. Subnormals keep one and the same step."
)
def no_subnormals(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (_exponent(x) - mantissa_bits) if x else 0.0


@ulp.misconception(
    "You take the exponent of the nearest power of two. Just below 2 the exponent is still 0: round it down."
)
def exponent_rounded(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    exponent = round(math.log2(abs(x))) if x else _lowest(exponent_bits)
    return 2.0 ** (max(exponent, _lowest(exponent_bits)) - mantissa_bits)


@ulp.misconception("That is half a gap: the largest rounding error, not the distance to the next number.")
def half_a_gap(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (max(_exponent(x), _lowest(exponent_bits)) - mantissa_bits - 1)


@ulp.misconception(
    "The logarithm of a negative number or of zero does not exist: start from abs(x), and treat what lies below the "
    "smallest normal number as one."
)
def logarithm_of_x(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (math.floor(math.log2(x)) - mantissa_bits)


@ulp.misconception("At a power of two you give the gap below it. The next larger number is twice as far.")
def gap_below(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    exponent = math.ceil(math.log2(abs(x))) - 1 if x else _lowest(exponent_bits)
    return 2.0 ** (max(exponent, _lowest(exponent_bits)) - mantissa_bits)


# round_to --------------------------------------------------------------------------------------------------------


def _round_cases(random: Random) -> list[Case]:
    cases = [
        case("any magnitude", random.gauss(0, 1) * 2.0 ** random.randint(-10, 10), *widths("bf16")) for _ in range(5)
    ]
    cases += [case("ties", 2.0 + random.choice([1, 3, 5, 7]) * 2.0**-8, *widths("bf16")) for _ in range(3)]
    cases += [case("below the smallest normal", random.uniform(-1, 1) * 2.0**-14, *widths("fp16")) for _ in range(3)]
    cases += [case("too large", sign * random.uniform(65520, 1e5), *widths("fp16")) for sign in (1, -1)]
    cases += [case("almost too large", 65519.0, *widths("fp16")), case("almost too large", 61439.9, *widths("e5m2"))]
    return [*cases, case("rounds up to a power of two", 1.9999, *widths("bf16"))]


round_to = Exercise(
    "round_to",
    points=3,
    minutes=8,
    difficulty=3,
    reference=lambda x, e, m: numerics.round_to(x, ieee(e, m)),
    tolerance=EXACT,
    cases=[
        case("0.1 in fp16", 0.1, *widths("fp16")),
        case("π in bf16", math.pi, *widths("bf16")),
        case("a negative number", -0.3, *widths("bf16")),
        case("a tie, the lower one is even", 1 + 2.0**-8, *widths("bf16")),
        case("a tie, the upper one is even", 1 + 3 * 2.0**-8, *widths("bf16")),
        case("a learning rate, subnormal in fp16", 3e-6, *widths("fp16")),
        case("too small for fp16", 1e-8, *widths("fp16")),
        case("too large for fp16", 70000.0, *widths("fp16")),
    ],
    hidden_cases=_round_cases,
    hints=[
        "Measure x in steps of its gap: x / ulp(x). What is left is to round to a whole number.",
        "Python's round() already goes to the even neighbour on a tie: round(2.5) is 2.",
        "If the result is larger than the largest finite number, it is infinity, with the sign of x (math.copysign).",
    ],
    forbid=["torch", "numpy"],
)


def _rounded(x: float, exponent_bits: int, mantissa_bits: int, how: object) -> float:
    """Rounding with another rule for the steps; overflow as it should be."""
    step = numerics.ulp(min(abs(x), ieee(exponent_bits, mantissa_bits).max_finite), ieee(exponent_bits, mantissa_bits))
    result = how(x / step) * step  # type: ignore[operator]
    limit = ieee(exponent_bits, mantissa_bits).max_finite
    return math.copysign(math.inf if abs(result) > limit else abs(result), x)


@round_to.misconception("You cut the extra bits off. Rounding goes to the nearest value, up or down.")
def truncated(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.trunc)


@round_to.misconception(
    "Your ties go away from zero, as at school. In IEEE arithmetic a tie goes to the even neighbour."
)
def ties_away_from_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, lambda steps: math.copysign(math.floor(abs(steps) + 0.5), steps))


@round_to.misconception("You always round down; for negative numbers that is away from zero. Round to the nearest.")
def floored(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.floor)


@round_to.misconception("There is no number that large in this format: beyond the largest finite one comes infinity.")
def no_overflow(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    step = 2.0 ** (max(_exponent(x), _lowest(exponent_bits)) - mantissa_bits)
    return math.copysign(round(x / step) * step, x)


@round_to.misconception("You stop at the largest finite number. Rounding to nearest overflows to infinity.")
def saturated(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    limit = ieee(exponent_bits, mantissa_bits).max_finite
    return max(-limit, min(limit, numerics.round_to(x, ieee(exponent_bits, mantissa_bits))))


@round_to.misconception(
    "You turn everything below the smallest normal number into zero. Subnormals fill that gap: fp16 still has 1024 "
    "steps there."
)
def flushed_to_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    small = abs(x) < 2.0 ** _lowest(exponent_bits)
    return math.copysign(0.0, x) if small else numerics.round_to(x, ieee(exponent_bits, mantissa_bits))


# lost_to_underflow -----------------------------------------------------------------------------------------------


def _lost(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    format = ieee(exponent_bits, mantissa_bits)
    values = [value for value in gradients.flatten().tolist() if value != 0]
    return sum(numerics.round_to(value, format) == 0 for value in values) / len(values)


def _gradients(random: Random, size: int, spread: float = 4.0) -> Tensor:
    return torch.tensor([random.gauss(0, 1) * 10.0 ** random.gauss(-7, spread / 4) for _ in range(size)])


def _lost_cases(random: Random) -> list[Case]:
    signs = _gradients(random, 200)
    some_zero = signs * torch.tensor([random.choice([0.0, 1.0, 1.0]) for _ in range(200)])
    return [
        case("gradients of many sizes", signs, *widths("fp16")),
        case("some exactly zero", some_zero, *widths("fp16")),
        case("other formats", signs, *widths("e5m2")),
        case("other formats", signs, *widths("bf16")),
        case("a matrix", signs.reshape(20, 10), *widths("fp16")),
    ]


_SIX = torch.tensor([1e-3, -2e-6, 7e-8, -4e-8, 2e-8, 0.0])

lost_to_underflow = Exercise(
    "lost_to_underflow",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_lost,
    cases=[
        case("six gradients in fp16", _SIX, *widths("fp16")),
        case("the same in bf16", _SIX, *widths("bf16")),
        case("the same, 1024 times larger", _SIX * 1024, *widths("fp16")),
    ],
    hidden_cases=_lost_cases,
    hints=[
        "Which numbers round to zero? Those at most half as large as the smallest subnormal.",
        "The smallest subnormal is 2^(1 − bias − M): 5.96e-8 in fp16.",
        "Count among the values that are not zero to begin with: those had something to lose.",
    ],
)


def _share(gradients: Tensor, threshold: float) -> float:
    values = gradients[gradients != 0].abs()
    return (values <= threshold).double().mean().item()


@lost_to_underflow.misconception(
    "You count everything below the smallest normal number. Subnormals are coarse but not zero: they are not lost."
)
def below_normal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients, 2.0 ** _lowest(exponent_bits))


@lost_to_underflow.misconception(
    "A value between half the smallest subnormal and the whole of it is rounded up, not lost."
)
def below_subnormal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients, 2.0 ** (_lowest(exponent_bits) - mantissa_bits))


@lost_to_underflow.misconception("You count gradients that were zero from the start: those have nothing to lose.")
def zeros_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return (gradients.abs() <= 2.0 ** (_lowest(exponent_bits) - mantissa_bits - 1)).double().mean().item()


@lost_to_underflow.misconception("You count every negative gradient as lost: compare its size, not its value.")
def negative_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    values = gradients[gradients != 0]
    return (values <= 2.0 ** (_lowest(exponent_bits) - mantissa_bits - 1)).double().mean().item()
