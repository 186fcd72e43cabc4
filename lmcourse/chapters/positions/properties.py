"""Properties of answers for their checks: of the complex factor of a position, in words.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Factor = Callable[[int, float], complex]

TOLERANCE = 1e-9
"""At position 100,000 the error of repeated multiplication is smaller than this in fp64, but not in fp32."""


def _is_same(first: complex, second: complex) -> bool:
    return abs(first - second) <= TOLERANCE


def _at(factor: Factor, m: int, speed: float) -> complex:
    """Return the factor as Python's complex number: infinite if it is too large. TypeError if it is no number."""
    try:
        value = factor(m, speed)
    except OverflowError:
        return complex(math.inf)
    try:
        return complex(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"position_factor must return one complex number, not a {type(value).__name__}") from None


def _numbers(first: float, second: float) -> tuple[str, str]:
    """Return two numbers with as many digits as are needed to distinguish them."""
    digits = next((digits for digits in (4, 8) if f"{first:.{digits}g}" != f"{second:.{digits}g}"), 12)
    return f"{first:.{digits}g}", f"{second:.{digits}g}"


def _pair(value: complex) -> str:
    return f"({value.real + 0.0:.2f}, {value.imag + 0.0:.2f})"


def at_zero(factor: Factor, speed: float) -> str:
    """Describe the result for the pair (1, 2) at positions 0 and 1."""
    first, second = (_at(factor, m, speed) * (1 + 2j) for m in (0, 1))
    if not _is_same(first, 1 + 2j):
        return f"(1, 2) becomes {_pair(first)} at position 0"
    return "(1, 2) stays at position 0" + (", and at position 1" if _is_same(second, first) else " only")


def lengths(factor: Factor, speed: float, *positions: int) -> str:
    """Describe the length of the rotated pair (3, 4), which should stay 5."""
    moved = [_at(factor, m, speed) * (3 + 4j) for m in positions]
    for m, vector in zip(positions, moved, strict=True):
        if not abs(abs(vector) - 5) <= TOLERANCE:
            return f"the length 5 becomes {_numbers(abs(vector), 5.0)[0]} at position {m:,}"
    return "(3, 4) does not move" if all(_is_same(vector, 3 + 4j) for vector in moved) else "the length stays 5"


def products(factor: Factor, speed: float, distance: int, *positions: int) -> str:
    """Describe two inner products: after query and key move together, and after the key moves alone."""
    places = [(m, m + distance) for m in positions]
    for q, k in ((1 + 2j, 3 + 4j), (1 + 2j, -4 + 3j)):
        found = [_product(factor, speed, q, k, *place) for place in places]
        for (m, n), value in zip(places, found, strict=True):
            if not _is_same(value, found[0]):
                (start, end), (before, after) = places[0], _numbers(found[0], value)
                return f"at m = {start:,}, n = {end:,} it is {before}; at m = {m:,}, n = {n:,} it is {after}"
    m, n = places[0]
    nearer = _product(factor, speed, 1 + 2j, 3 + 4j, m, n - 1)
    farther = _product(factor, speed, 1 + 2j, 3 + 4j, m, n)
    if _is_same(nearer, farther):
        return f"at m = {m:,} it is {farther:.4g} for n = {n - 1:,} and for n = {n:,}"
    return "it depends on the distance alone"


def _product(factor: Factor, speed: float, q: complex, k: complex, m: int, n: int) -> float:
    """Return the inner product of a query at m and a key at n."""
    return ((q * _at(factor, m, speed)).conjugate() * k * _at(factor, n, speed)).real


def two_speeds(factor: Factor, first: float, second: float) -> str:
    """Describe whether two speeds rotate the same pair differently, and whether both rotate it."""
    values = [[_at(factor, m, speed) for m in (1, 2, 3)] for speed in (first, second)]
    for speed, (one, two, three) in zip((first, second), values, strict=True):
        if _is_same(one, two) and _is_same(two, three):
            return f"with speed {speed} the factor is the same at positions 1, 2 and 3"
    if all(map(_is_same, *values)):
        return f"the factor is the same for {first} and {second}"
    return "two speeds, two functions"
