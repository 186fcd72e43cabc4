"""The exercise on the largest number of a format."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise
from lmcourse.numerics import FORMATS


def _max_case(name: str, format: str) -> Case:
    extra = {} if FORMATS[format].has_infinity else {"has_infinity": False}
    return case(name, *widths(format), **extra)


def _other_formats(random: Random) -> list[Case]:
    fixed = [(2, 1), (2, 2), (3, 4), (4, 3), (8, 10), (9, 2)]
    without_infinity = [(2, 2), (3, 1), (5, 2), (6, 9)]
    drawn = [(random.randint(3, 9), random.randint(2, 20)) for _ in range(2)]
    cases = [case("other widths", *shape) for shape in fixed]
    cases += [case("other widths without infinity", *shape, has_infinity=False) for shape in without_infinity]
    cases += [case("other widths", *shape) for shape in drawn]
    return cases + [case("other widths without infinity", *shape, has_infinity=False) for shape in drawn]


max_finite = Exercise(
    "max_finite",
    points=2,
    minutes=5,
    difficulty=2,
    reference=lambda e, m, has_infinity=True: ieee(e, m, has_infinity).max_finite,
    tolerance=EXACT,
    cases=[
        _max_case("fp16", "fp16"),
        _max_case("bf16", "bf16"),
        _max_case("fp32", "fp32"),
        _max_case("E5M2", "e5m2"),
        _max_case("E4M3", "e4m3"),
    ],
    hidden_cases=_other_formats,
    hints=[
        "The largest number has the largest exponent that is not reserved and as many ones in the fraction as are "
        "allowed.",
        "With infinity the exponent field stops at 2^E − 2, and the fraction may be all ones: 2 − 2^−M.",
        "Without infinity the field 2^E − 1 is a number too, but all ones in the fraction is NaN: 2 − 2·2^−M is left.",
    ],
    forbid=[".finfo", ".nan_to_num", "sys.float_info"],
)


def _wrong_max(field: int, significand: float, exponent_bits: int) -> float:
    return math.ldexp(significand, field - (2 ** (exponent_bits - 1) - 1))


@max_finite.misconception(
    "You used the exponent of all ones, which IEEE formats keep for infinity and NaN: twice too large."
)
def top_exponent_used(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    steps = 1 if has_infinity else 2
    return _wrong_max(2**exponent_bits - 1, 2 - steps * 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception("That is the power of two just above. A significand is always below 2.")
def significand_of_two(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 2.0, exponent_bits)


@max_finite.misconception("That is the largest power of two. The fraction adds nearly as much again.")
def power_of_two(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 1.0, exponent_bits)


@max_finite.misconception(
    "1.111 × 2^8 = 480 is the one pattern that E4M3 uses for NaN. The largest number is one step below: 448."
)
def nan_as_number(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 2 - 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception("Your significand is below 1: the hidden 1 is missing. Add 1 to the largest fraction.")
def without_the_hidden_one(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    field, steps = (2**exponent_bits - 2, 1) if has_infinity else (2**exponent_bits - 1, 2)
    return _wrong_max(field, 1 - steps * 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception("Without infinity the exponent of all ones is an ordinary one: E4M3 reaches 448, not 240.")
def e4m3_stops_early(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - 2, 2 - 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception("Your bias is 2^(E−1). The right bias is one less, so your result is half the right one.")
def bias_one_too_large(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    field, steps = (2**exponent_bits - 3, 1) if has_infinity else (2**exponent_bits - 2, 2)
    return _wrong_max(field, 2 - steps * 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception(
    "You leave out the fraction of all ones in every format. With infinity, NaN has an exponent of its own, and the "
    "fraction of the largest number is all ones."
)
def never_all_ones(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 2 - 2 * 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception(
    "Without infinity you leave out the exponent of all ones, and the fraction of all ones too. Only both together are "
    "NaN."
)
def twice_reserved(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    steps = 1 if has_infinity else 2
    return _wrong_max(2**exponent_bits - 2, 2 - steps * 2.0**-mantissa_bits, exponent_bits)


@max_finite.variant
def one_half_after_the_other(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    significand = 1.0
    for place in range(1, mantissa_bits + 1):
        if has_infinity or place < mantissa_bits:
            significand += 0.5**place
    for _ in range(2 ** (exponent_bits - 1) - has_infinity):
        significand *= 2
    return significand


@max_finite.variant
def as_whole_numbers(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Fraction:
    steps = (1 << mantissa_bits + 1) - (1 if has_infinity else 2)
    return Fraction(steps << (1 << exponent_bits - 1) - int(has_infinity), 1 << mantissa_bits)


@max_finite.variant
def one_gap_below_the_power(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Any:
    exponent = 2 ** (exponent_bits - 1) - 1
    if not has_infinity:
        exponent += 1
    gap = 2.0 ** (exponent - mantissa_bits)
    return 2.0 ** (exponent + 1) - (gap if has_infinity else gap + gap)


@max_finite.variant
def read_from_its_pattern(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    pattern = 2 ** (exponent_bits + mantissa_bits) - (2**mantissa_bits if has_infinity else 1) - 1
    field, mantissa = pattern >> mantissa_bits, pattern & ~(-1 << mantissa_bits)
    return math.ldexp(1 + mantissa * 2.0**-mantissa_bits, field + 1 - 2 ** (exponent_bits - 1))
