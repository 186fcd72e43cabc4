"""The exercise on rounding to the nearest number of a format."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise


def _fixed_cases() -> list[Case]:
    cases = [
        case("ties", value, *widths("bf16"))
        for value in (2 + 2.0**-7, -2 - 3 * 2.0**-7, 0.5 + 5 * 2.0**-10, 1 + 2.0**-8 + 2.0**-30)
    ]
    cases += [
        case("below the smallest normal", steps * 2.0**-24, *widths("fp16"))
        for steps in (1, -0.5, 0.5 + 2.0**-20, 1.5, 2.5, -51, 1023.5)
    ]
    cases += [case("the sign of zero", value, *widths("fp16")) for value in (0.0, -0.0, -1e-8, -5e-324)]
    cases += [case("too large", value, *widths("fp16")) for value in (65520.0, -65520.0, -70000.0, 1e300)]
    cases += [case("almost too large", value, *widths("fp16")) for value in (65519.99, -65519.99, 65504.0)]
    cases += [case("almost too large", 61439.9, *widths("e5m2"))]
    cases += [case("rounds up to a power of two", value, *widths("bf16")) for value in (1.9999, -0.4999)]
    cases += [case("formats nobody has built", value, 3, 4) for value in (0.1, -0.26, 1.03125, 15.7, 15.75)]
    cases += [case("formats nobody has built", 1 / 3, 6, 9), case("wide formats", 1 / 3, *widths("fp32"))]
    return [*cases, case("wide formats", -(2.0**-149) * 2.6, *widths("fp32"))]


def _round_cases(random: Random) -> list[Case]:
    steps = [128 + 2 * random.randrange(64) + fraction for fraction in (0.75, 1.75, 0.5, 1.5)]
    powers = [random.randint(low, high) for low, high in ((-20, -10), (-20, -10), (3, 20), (3, 20))]
    return _fixed_cases() + [
        case("any magnitude", sign * step * 2.0**power, *widths("bf16"))
        for sign, step, power in zip((1, -1, -1, 1), steps, powers, strict=True)
    ]


round_to = Exercise(
    "round_to",
    points=3,
    minutes=12,
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
        case("too small for bf16", -1e-41, *widths("bf16")),
        case("too large for fp16", 70000.0, *widths("fp16")),
        case("just above the largest fp16 number", 65519.0, *widths("fp16")),
    ],
    hidden_cases=_round_cases,
    hints=[
        "Measure x in steps of its gap: x / ulp(x). Then round that to a whole number.",
        "Python's round() already goes to the even neighbour on a tie: round(2.5) is 2.",
        "If the result is larger than the largest finite number, it is infinity, with the sign of x (math.copysign).",
    ],
    forbid=["torch", "numpy", "mpmath", "struct"],
)
round_to.equivalent_mutant(
    "step = 2.0 ** (max(math.frexp(x)[1] - 1, lowest) - mantissa_bits) → "
    "step = 2.0 ** (max(lowest, math.frexp(x)[1] - 1) - mantissa_bits)",
    "The larger of two integers is the same, whichever comes first.",
)


def _rounded(x: float, exponent_bits: int, mantissa_bits: int, how: Callable[[float], float]) -> float:
    """Round with another rule for the steps; overflow is handled correctly."""
    format = ieee(exponent_bits, mantissa_bits)
    step = numerics.ulp(min(abs(x), format.max_finite), format)
    result = how(x / step) * step
    return math.copysign(math.inf if abs(result) > format.max_finite else abs(result), x)


@round_to.misconception("You cut off the extra bits. Round to the nearest value, up or down.")
def truncated(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.trunc)


@round_to.misconception(
    "You round ties away from zero, as at school. In IEEE arithmetic a tie goes to the even neighbour."
)
def ties_away_from_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, lambda steps: math.copysign(math.floor(abs(steps) + 0.5), steps))


@round_to.misconception("You round ties towards zero. In IEEE arithmetic a tie goes to the even neighbour, up or down.")
def ties_towards_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, lambda steps: math.copysign(math.ceil(abs(steps) - 0.5), steps))


@round_to.misconception("You always round down; for negative numbers that is away from zero. Round to the nearest.")
def floored(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.floor)


@round_to.misconception("There is no number that large in this format: beyond the largest finite one comes infinity.")
def no_overflow(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    lowest = ieee(exponent_bits, mantissa_bits).min_exponent
    step = 2.0 ** (max(math.frexp(x)[1] - 1, lowest) - mantissa_bits)
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
    small = abs(x) < ieee(exponent_bits, mantissa_bits).min_normal
    return math.copysign(0.0, x) if small else numerics.round_to(x, ieee(exponent_bits, mantissa_bits))


@round_to.misconception("You lose the sign of zero: a negative number that rounds to zero becomes -0.0.")
def zero_without_sign(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return numerics.round_to(x, ieee(exponent_bits, mantissa_bits)) or 0


@round_to.misconception(
    "You call everything infinite that is larger than the largest finite number. Round first: a number less than half "
    "a step above it is rounded down."
)
def overflow_before_rounding(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    too_large = abs(x) > ieee(exponent_bits, mantissa_bits).max_finite
    return math.copysign(math.inf, x) if too_large else numerics.round_to(x, ieee(exponent_bits, mantissa_bits))


@round_to.misconception(
    "Half a step above the largest finite number, you round down. That is a tie, and its even neighbour would be the "
    "next power of two, so it rounds to infinity."
)
def tie_at_the_end_comes_down(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    format = ieee(exponent_bits, mantissa_bits)
    tie = format.max_finite + numerics.ulp(format.max_finite, format) / 2
    return math.copysign(format.max_finite, x) if abs(x) == tie else numerics.round_to(x, format)


@round_to.misconception(
    "You measure x in steps of the gap above the next power of two. Between two powers of two the gap is that of the "
    "lower one."
)
def gap_of_the_power_above(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    format = ieee(exponent_bits, mantissa_bits)
    if x == 0 or abs(x) > format.max_finite:
        return numerics.round_to(x, format)
    step = 2.0 ** (max(math.ceil(math.log2(abs(x))), format.min_exponent) - mantissa_bits)
    return math.copysign(round(abs(x) / step) * step, x)


@round_to.variant
def with_decimals(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    exponent = max(int(x.hex().split("p")[1]), 2 - 2 ** (exponent_bits - 1))
    step = Decimal(2.0 ** (exponent - mantissa_bits))
    exact = Context(prec=2000)
    steps = exact.divide(Decimal(x), step).to_integral_value(ROUND_HALF_EVEN)
    result = float(exact.multiply(steps, step))
    return math.copysign(math.inf, x) if abs(result) >= 2.0**2 ** (exponent_bits - 1) else result


@round_to.variant
def by_adding_and_taking_away(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    bias = 2 ** (exponent_bits - 1) - 1
    size = abs(x)
    if size >= 2.0 ** (bias + 1):
        return math.copysign(math.inf, x)
    power = 2.0 ** (1 - bias)
    while size >= 2 * power:
        power *= 2
    anchor = 2.0**52 * (power / 2**mantissa_bits)  # from here on, fp64 has no digits below the gaps of the format
    size = (size + anchor) - anchor
    return math.copysign(size if size < 2.0 ** (bias + 1) else math.inf, x)


@round_to.variant
def between_its_neighbours(x: float, exponent_bits: int, mantissa_bits: int) -> Any:
    if math.copysign(1, x) < 0:
        return -between_its_neighbours(-x, exponent_bits, mantissa_bits)
    bias = (1 << exponent_bits - 1) - 1
    _, exponent = math.frexp(x)
    gap = Fraction(2) ** (max(exponent - 1, 1 - bias) - mantissa_bits)
    below = Fraction(x) // gap
    rest = Fraction(x) - below * gap
    if rest > gap / 2 or (rest == gap / 2 and below % 2 == 1):
        below += 1
    largest = (2 - Fraction(1, 2**mantissa_bits)) * 2**bias
    return float(below * gap) if below * gap <= largest else math.inf


@round_to.variant
def with_remainder(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    lowest = 2 - 2 ** (exponent_bits - 1)
    exponent = max(math.floor(math.log2(abs(x))), lowest) if x else lowest
    result = x - math.remainder(x, 2.0 ** (exponent - mantissa_bits))
    overflow = abs(result) > (2 - 0.5**mantissa_bits) * 2.0 ** (1 - lowest)
    return math.copysign(math.inf if overflow else result, x)
