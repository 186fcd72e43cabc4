"""Rounding of numbers and of running sums in a floating-point format.

The last function is the reason why tensors are multiplied in 16 bits but added up in 32: a running sum that
is rounded after every addition stops growing as soon as the increment is at most half the gap between
neighbouring values.
"""

from __future__ import annotations

import math

from lmcourse.numerics.codes import binade, decode, encode
from lmcourse.numerics.formats import FloatFormat


def round_to(value: float, format: FloatFormat) -> float:
    """The nearest value of the format, ties to even; overflow and NaN as in `encode`. Exact up to fp64."""
    return decode(encode(value, format), format)


def ulp(value: float, format: FloatFormat) -> float:
    """The unit in the last place: the gap from |value| to the next larger magnitude of the format.

    At a power of two this is the gap above it, twice the gap below. Among subnormals and at zero it is
    `min_subnormal`. In the top power of two it is the same for all, `max_finite` included, although nothing
    finite follows it. ValueError if `value` is not finite or larger than `max_finite`.
    """
    if not abs(value) <= format.max_finite:
        raise ValueError(f"{value} is not a finite value of {format.name} (largest {format.max_finite:g})")
    return math.ldexp(1.0, binade(value, format) - format.mantissa_bits)


def running_sum(value: float, count: int, format: FloatFormat) -> list[float]:
    """The partial sums of adding `value` to zero `count` times; the value and every sum are rounded."""
    increment = round_to(value, format)
    sums: list[float] = []
    total = 0.0
    for _ in range(count):
        # Python adds in fp64. Rounding its sum again is harmless: 53 bits are over 2·24 + 2 (Figueroa 1995).
        total = round_to(total + increment, format)
        sums.append(total)
    return sums


def stall_point(increment: float, format: FloatFormat) -> float:
    """The sum at which adding `increment` again and again, starting from zero, no longer changes it.

    Adding x to a sum s does nothing once x ≤ ulp(s)/2 (a tie keeps an even s). The first such s is the
    smallest power of two that is at least x · 2^(mantissa_bits + 1): bf16 and 0.01 give 4. If the format ends
    before that, the sum ends there: at infinity, or at ±448 in E4M3. An increment that rounds to zero stalls
    at 0.

    ValueError if the increment is not finite in the format.
    """
    rounded = round_to(increment, format)
    if not (math.isfinite(increment) and math.isfinite(rounded)):
        raise ValueError(f"the increment {increment} is not a finite value of {format.name}")
    if rounded == 0:
        return 0.0
    fraction, exponent_above = math.frexp(abs(rounded))
    power_of_two_above = exponent_above - 1 if fraction == 0.5 else exponent_above
    exponent = power_of_two_above + format.mantissa_bits + 1
    stalled = math.ldexp(1.0, exponent) if exponent <= format.max_exponent else round_to(math.inf, format)
    return math.copysign(stalled, rounded)
