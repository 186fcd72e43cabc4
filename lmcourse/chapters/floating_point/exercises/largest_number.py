"""Exercises on the largest number of a format."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise, value_exercise
from lmcourse.numerics import E4M3, FORMATS

# max_finite ------------------------------------------------------------------------------------------------------


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


@max_finite.misconception("That is the power of two just above: the significand ends one step below 2, not at 2.")
def significand_of_two(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 2.0, exponent_bits)


@max_finite.misconception("That is the largest power of two. The fraction adds nearly as much again.")
def power_of_two(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 1.0, exponent_bits)


@max_finite.misconception(
    "1.111 × 2^8 = 480 is the one pattern that E4M3 spends on NaN. The largest number is one step below: 448."
)
def nan_as_number(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - (2 if has_infinity else 1), 2 - 2.0**-mantissa_bits, exponent_bits)


@max_finite.misconception("Without infinity the exponent of all ones is an ordinary one: E4M3 reaches 448, not 240.")
def e4m3_stops_early(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_max(2**exponent_bits - 2, 2 - 2.0**-mantissa_bits, exponent_bits)


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


# e4m3_missing ----------------------------------------------------------------------------------------------------

e4m3_missing = value_exercise(
    "e4m3_missing",
    points=1,
    minutes=2,
    difficulty=1,
    reference=lambda: E4M3.max_finite + 2.0 ** (E4M3.max_exponent - E4M3.mantissa_bits),
    tolerance=EXACT,
    hints=[
        "The pattern S.1111.111 would continue the row …, 384, 416, 448 if it were not NaN.",
        "(1 + 7/8) · 2^8, with the brackets.",
    ],
)
e4m3_missing.wrong_value(225.0, "1 + 7/8 × 2^8 as printed, without the brackets, is 225. The power multiplies 1 + 7/8.")
e4m3_missing.wrong_value(240.0, "That is (1 + 7/8) · 2^7: the exponent field 1111 means 15 − 7 = 8.")
e4m3_missing.wrong_value(448.0, "That is (1 + 6/8) · 2^8, the largest number that exists. The next one is missing.")
e4m3_missing.wrong_value(512.0, "The row goes on in steps of 32, so the next after 448 comes before 512.")
e4m3_missing.wrong_value(-480.0, "The size is right. The first bit, 0, is the sign, and means plus.")
e4m3_missing.right_value("480", "1.875 * 256", "448.0 + 32", "torch.tensor(480)", "math.ldexp(15, 5)")
