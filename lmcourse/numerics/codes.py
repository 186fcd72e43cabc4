"""Encode and decode floating-point numbers, bit by bit and exactly.

A *code* is the bit pattern of a float read as an unsigned integer. This module does not use PyTorch: a number is an
integer times a power of two, so `math.ldexp` is enough, which is exact as long as its result is representable.

One property keeps the module short: without the sign bit, codes have the same order as the magnitudes that they
represent. Adding one to a code gives the next larger value, even across powers of two and from subnormal to normal
numbers; after the largest number comes infinity (IEEE 754-2019, §3.4 and §4.3).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from lmcourse.numerics.float_formats import FloatFormat

Kind = Literal["zero", "subnormal", "normal", "infinity", "nan"]


class Fields(NamedTuple):
    """Sign, exponent and mantissa of a code as unsigned integers, and the kind of number."""

    sign: int
    exponent: int
    mantissa: int
    kind: Kind


def fields(code: int, format: FloatFormat) -> Fields:
    """Split a code into sign, exponent and mantissa; raise ValueError if the code does not fit the format."""
    if not 0 <= code < 1 << format.bits:
        raise ValueError(f"code {code} does not fit in the {format.bits} bits of {format.name}")
    sign, magnitude = divmod(code, 1 << (format.bits - 1))
    exponent, mantissa = divmod(magnitude, 1 << format.mantissa_bits)
    return Fields(sign, exponent, mantissa, _kind(magnitude, format))


def decode(code: int, format: FloatFormat) -> float:
    """Return the value of a code, exact up to fp64; zero keeps its sign. Raises ValueError as in `fields`."""
    sign, exponent, mantissa, kind = fields(code, format)
    if kind == "nan":
        return math.nan
    if kind == "infinity":
        magnitude = math.inf
    elif kind == "normal":
        significand = (1 << format.mantissa_bits) + mantissa
        magnitude = math.ldexp(significand, exponent - format.bias - format.mantissa_bits)
    else:
        magnitude = math.ldexp(mantissa, format.min_exponent - format.mantissa_bits)
    return -magnitude if sign else magnitude


def encode(value: float, format: FloatFormat) -> int:
    """Return the code nearest to a value; in a tie, the code whose last bit is 0 (IEEE 754-2019, §4.3.1).

    A value from half a step above `max_finite` on becomes infinity if the format has infinity. E4M3 saturates at ±448,
    even for infinity, as `Tensor.to(torch.float8_e4m3fn)` does since pytorch#178817; earlier releases gave NaN. NaN
    becomes the positive quiet NaN.
    """
    if math.isnan(value):
        return nan_code(format)
    magnitude = _largest_code(format) if math.isinf(value) else _magnitude_code(abs(value), format)
    sign = 1 if math.copysign(1.0, value) < 0 else 0
    return sign << (format.bits - 1) | magnitude


def infinity_code(format: FloatFormat) -> int:
    """Return the code of +∞: exponent all ones, mantissa zero. In E4M3, which has no infinity, that code is 256."""
    return ((1 << format.exponent_bits) - 1) << format.mantissa_bits


def nan_code(format: FloatFormat) -> int:
    """Return the code of the positive quiet NaN: highest mantissa bit set (IEEE), or all mantissa bits (E4M3)."""
    if format.has_infinity:
        return infinity_code(format) + (1 << (format.mantissa_bits - 1))
    return (1 << (format.bits - 1)) - 1


def binade(value: float, format: FloatFormat) -> int:
    """Return e with 2^e ≤ |value| < 2^(e+1), but at least the exponent that zero and all subnormals share."""
    if value == 0:
        return format.min_exponent
    _, exponent_above = math.frexp(value)
    return max(exponent_above - 1, format.min_exponent)


def neighbours(code: int, format: FloatFormat) -> tuple[float, float]:
    """Return the next smaller and the next larger value; raise ValueError if the code is not finite.

    Beyond the largest finite value the next code is infinity, or NaN in E4M3.
    """
    position = _position(code, format)
    return _value_at(position - 1, format), _value_at(position + 1, format)


def values_between(low: float, high: float, format: FloatFormat) -> list[float]:
    """Return all distinct finite values v with low ≤ v ≤ high, ascending; zero occurs once.

    The list has a number for every code, so use `count_between` first if the format is wide.
    """
    first, last = _positions(low, high, format)
    values = (_value_at(position, format) for position in range(first, last + 1))
    return [value for value in values if low <= value <= high and math.isfinite(value)]


def count_between(low: float, high: float, format: FloatFormat) -> int:
    """Return the number of values between the two roundings of `low` and `high`, without listing them."""
    first, last = _positions(low, high, format)
    return last - first + 1


def _kind(magnitude: int, format: FloatFormat) -> Kind:
    if magnitude == 0:
        return "zero"
    if magnitude < 1 << format.mantissa_bits:
        return "subnormal"
    if magnitude > _largest_code(format):
        return "nan"
    if format.has_infinity and magnitude == infinity_code(format):
        return "infinity"
    return "normal"


def _largest_code(format: FloatFormat) -> int:
    """Return the code of the largest magnitude that is not NaN: infinity if the format has it, or the largest
    number."""
    return infinity_code(format) if format.has_infinity else nan_code(format) - 1


def _magnitude_code(magnitude: float, format: FloatFormat) -> int:
    exponent = binade(magnitude, format)
    # Scaling by a power of two to below 2^(mantissa_bits + 1) is exact. `round` rounds to nearest, ties to even.
    steps = round(math.ldexp(magnitude, format.mantissa_bits - exponent))
    # Rounding up to a power of two carries into the exponent. This is correct, because codes have the order of values.
    code = ((exponent - format.min_exponent) << format.mantissa_bits) + steps
    return min(code, _largest_code(format))


def _position(code: int, format: FloatFormat) -> int:
    """Return the signed number of codes between zero and a finite value."""
    sign, _, _, kind = fields(code, format)
    if kind in ("nan", "infinity"):
        raise ValueError(f"code {code} of {format.name} is {kind}, which has no neighbours")
    magnitude = code % (1 << (format.bits - 1))
    return -magnitude if sign else magnitude


def _positions(low: float, high: float, format: FloatFormat) -> tuple[int, int]:
    if not low <= high:
        raise ValueError(f"the interval from {low} to {high} is empty")
    limit = format.max_finite
    first, last = (max(-limit, min(limit, edge)) for edge in (low, high))
    return _position(encode(first, format), format), _position(encode(last, format), format)


def _value_at(position: int, format: FloatFormat) -> float:
    magnitude = decode(abs(position), format)
    return -magnitude if position < 0 else magnitude


def round_to(value: float, format: FloatFormat) -> float:
    """Return the nearest value of the format, ties to even; overflow and NaN as in `encode`. Exact up to fp64."""
    return decode(encode(value, format), format)


def ulp(value: float, format: FloatFormat) -> float:
    """Return the unit in the last place: the gap from |value| to the next larger magnitude of the format.

    At a power of two this is the gap above it, twice the gap below. For subnormals and zero it is `min_subnormal`. In
    the top power of two it is the same for all numbers, including `max_finite`, although no finite number follows it.
    Raises ValueError if `value` is not finite or larger than `max_finite`.
    """
    if not abs(value) <= format.max_finite:
        raise ValueError(f"{value} is not a finite value of {format.name} (largest {format.max_finite:g})")
    return math.ldexp(1.0, binade(value, format) - format.mantissa_bits)


def running_sum(value: float, count: int, format: FloatFormat) -> list[float]:
    """Return the partial sums of adding `value` to zero `count` times; the value and every sum are rounded."""
    increment = round_to(value, format)
    sums: list[float] = []
    total = 0.0
    for _ in range(count):
        # Python adds in fp64. Rounding the sum a second time is harmless, because 53 bits are more than 2·24 + 2
        # (Figueroa 1995).
        total = round_to(total + increment, format)
        sums.append(total)
    return sums


def stall_point(increment: float, format: FloatFormat) -> float:
    """Return the sum at which repeatedly adding `increment`, starting from zero, has no more effect.

    Adding x to a sum s does nothing once x ≤ ulp(s)/2 (a tie keeps an even s). The first such s is the
    smallest power of two that is at least x · 2^(mantissa_bits + 1): bf16 and 0.01 give 4. If the sum overflows before
    that, it ends at infinity, or at ±448 in E4M3. An increment that rounds to zero stalls at 0.

    Raises ValueError if the increment is not finite in the format.
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
