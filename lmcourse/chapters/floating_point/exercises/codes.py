"""Exercises on what a bit pattern stands for."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise, value_exercise
from lmcourse.numerics import E4M3, FORMATS, decode

SMALL = [name for name in FORMATS if name != "fp64"]


# decimal_error ---------------------------------------------------------------------------------------------------

decimal_error = Exercise(
    "decimal_error",
    points=1,
    minutes=3,
    difficulty=1,
    reference=lambda digits, exponent: 0.5 * 10.0 ** (exponent - digits + 1),
    cases=[
        case("Avogadro's number, four digits", digits=4, exponent=23),
        case("3.14", digits=3, exponent=0),
        case("the charge of an electron, 1.602e-19", digits=4, exponent=-19),
    ],
    hidden_cases=lambda random: [
        case("other numbers", digits=random.randint(2, 9), exponent=random.randint(-30, 30)) for _ in range(4)
    ],
    hints=[
        "In 6.022e23 the last digit stands for 0.001e23. How far can the true value be before you would write "
        "another digit?",
        "Rounding to the nearest is off by at most half a step of the last digit.",
        "The step of the last digit is 10 ** (exponent - (digits - 1)).",
    ],
)


@decimal_error.misconception(
    "That is a whole step of the last digit, as in the notes. A number rounded to the nearest is off by half a step "
    "at most."
)
def whole_step(digits: int, exponent: int) -> float:
    return 10.0 ** (exponent - digits + 1)


@decimal_error.misconception("That is the error of the significand alone: it still has to be scaled by 10 ** exponent.")
def without_exponent(digits: int, exponent: int) -> float:
    return 0.5 * 10.0 ** (1 - digits)


@decimal_error.misconception(
    "You scaled by 10 ** exponent twice: an ε that is measured in the number's own unit already contains it."
)
def scaled_twice(digits: int, exponent: int) -> float:
    return 0.5 * 10.0 ** (2 * exponent - digits + 1)


@decimal_error.misconception(
    "One digit stands before the point, so only digits − 1 follow it: you are ten times too small."
)
def digits_after_the_point(digits: int, exponent: int) -> float:
    return 0.5 * 10.0 ** (exponent - digits)


# decode_bits -----------------------------------------------------------------------------------------------------


def _decode(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return decode(bits, ieee(exponent_bits, mantissa_bits, has_infinity))


def _code_case(name: str, bits: int, format: str) -> Case:
    extra = {} if FORMATS[format].has_infinity else {"has_infinity": False}
    return case(name, bits, *widths(format), **extra)


def _random_codes(random: Random) -> list[Case]:
    cases = [
        _code_case("any code of any format", random.randrange(2 ** FORMATS[name].bits), name)
        for name in SMALL
        for _ in range(3)
    ]
    cases += [
        case("formats nobody has built", random.randrange(2**10), 6, 3),
        case("formats nobody has built", 1, 3, 4),
    ]
    cases += [_code_case("subnormals", random.randrange(1, 2 ** widths(name)[1]), name) for name in SMALL]
    cases += [
        _code_case("infinity and NaN", 0xFC00, "fp16"),
        _code_case("infinity and NaN", 0xFC00 | random.randrange(1, 1023), "fp16"),
        _code_case("infinity and NaN", 0xFF, "e4m3"),
        _code_case("infinity and NaN", 0x7F, "e4m3"),
    ]
    return [
        *cases,
        case("codes that do not fit", 2**16 + random.randrange(9), 5, 10),
        case("codes that do not fit", -1, 4, 3),
    ]


decode_bits = Exercise(
    "decode_bits",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_decode,
    tolerance=EXACT,
    cases=[
        _code_case("one", 0x3F800000, "fp32"),
        _code_case("−2.5 in fp16", 0xC100, "fp16"),
        _code_case("π in bf16", 0x4049, "bf16"),
        _code_case("minus zero", 0x8000, "fp16"),
        _code_case("the smallest fp16 subnormal", 0x0001, "fp16"),
        _code_case("infinity", 0x7C00, "fp16"),
        _code_case("not a number, negative", 0xFE00, "fp16"),
        _code_case("E5M2, exponent all ones", 0x7C, "e5m2"),
        _code_case("E4M3, exponent all ones but a number", 0x7E, "e4m3"),
        _code_case("E4M3, not a number", 0xFF, "e4m3"),
    ],
    hidden_cases=_random_codes,
    hints=[
        "Cut the integer with >> and &: the mantissa is the lowest mantissa_bits bits, the exponent field comes next.",
        "The bias is 2 ** (exponent_bits - 1) - 1. Exponent field 0 means no hidden one, and the exponent 1 − bias.",
        "All ones in the exponent: with has_infinity, mantissa 0 is ±inf and all else nan. Without it, only all ones "
        "in "
        "the mantissa too is nan, and everything else is an ordinary number.",
    ],
    forbid=["struct", "torch", "numpy"],
)


def _wrong_decode(
    bits: int,
    exponent_bits: int,
    mantissa_bits: int,
    has_infinity: bool = True,
    *,
    bias_shift: int = 0,
    hidden_one_always: bool = False,
    subnormal_exponent_shift: int = 0,
    reserved: bool = True,
    signed: bool = True,
    fraction_shift: int = 0,
) -> float:
    """A decoder with one mistake switched on."""
    if not 0 <= bits < 2 ** (1 + exponent_bits + mantissa_bits):
        raise ValueError("the code does not fit")
    mantissa = bits & (2**mantissa_bits - 1)
    exponent = (bits >> mantissa_bits) & (2**exponent_bits - 1)
    sign = -1.0 if signed and bits >> (exponent_bits + mantissa_bits) else 1.0
    bias = 2 ** (exponent_bits - 1) - 1 + bias_shift
    fraction = mantissa / 2 ** (mantissa_bits + fraction_shift)
    ones = exponent == 2**exponent_bits - 1
    if reserved and ones and has_infinity:
        return sign * math.inf if mantissa == 0 else math.nan
    if reserved and ones and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == 0 and not hidden_one_always:
        return sign * math.ldexp(fraction, 1 - bias + subnormal_exponent_shift)
    return sign * math.ldexp(1 + fraction, exponent - bias)


@decode_bits.misconception(
    "You add the hidden one to subnormals too. When the exponent field is 0 the significand is 0.f, and zero is zero."
)
def hidden_one_in_subnormals(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, hidden_one_always=True)


@decode_bits.misconception(
    "Your subnormals are half of what they should be: their exponent is 1 − bias, not 0 − bias, so that they join the "
    "smallest normal number without a gap."
)
def subnormal_exponent_too_small(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, subnormal_exponent_shift=-1)


@decode_bits.misconception("Your bias is 2^(E−1). It is one less: 127 for 8 exponent bits, not 128.")
def bias_one_too_large(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, bias_shift=1)


@decode_bits.misconception("The sign bit, the highest one, is not used: negative codes come out positive.")
def sign_ignored(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, signed=False)


@decode_bits.misconception("An exponent of all ones is read as a number. It is kept for infinity and NaN.")
def nothing_reserved(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, reserved=False)


@decode_bits.misconception(
    "E4M3 has no infinity: with has_infinity=False an exponent of all ones is an ordinary number unless the mantissa "
    "is "
    "all ones as well. That is how E4M3 reaches 448."
)
def e4m3_like_ieee(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_decode(bits, exponent_bits, mantissa_bits, True)


@decode_bits.misconception("The fraction is mantissa / 2^M: the first fraction bit is worth one half, not one.")
def fraction_doubled(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, fraction_shift=-1)


@decode_bits.misconception(
    "NaN is not just 'all bits set to 1': the sign bit may be 0 or 1, and in IEEE formats any mantissa but 0 will do."
)
def nan_only_when_all_ones(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    if bits == 2 ** (1 + exponent_bits + mantissa_bits) - 1:
        return math.nan
    value = _wrong_decode(bits, exponent_bits, mantissa_bits, has_infinity)
    return _wrong_decode(bits, exponent_bits, mantissa_bits, reserved=False) if math.isnan(value) else value


# max_finite ------------------------------------------------------------------------------------------------------


def _max_case(name: str, format: str) -> Case:
    extra = {} if FORMATS[format].has_infinity else {"has_infinity": False}
    return case(name, *widths(format), **extra)


def _other_formats(random: Random) -> list[Case]:
    shapes = [(random.randint(3, 9), random.randint(2, 20)) for _ in range(4)]
    cases = [case("other widths", *shape) for shape in shapes]
    return cases + [case("other widths without infinity", *shape, has_infinity=False) for shape in shapes[:3]]


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
    forbid=["torch", "numpy"],
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


# e4m3_missing ----------------------------------------------------------------------------------------------------

e4m3_missing = value_exercise(
    "e4m3_missing",
    points=1,
    minutes=2,
    difficulty=1,
    reference=lambda: E4M3.max_finite + 2.0 ** (E4M3.max_exponent - E4M3.mantissa_bits),
    hints=[
        "The pattern S.1111.111 would continue the row …, 384, 416, 448 if it were not NaN.",
        "(1 + 7/8) · 2^8, with the brackets.",
    ],
)
e4m3_missing.wrong_value(225.0, "1 + 7/8 × 2^8 as printed, without the brackets, is 225. The power multiplies 1 + 7/8.")
e4m3_missing.wrong_value(240.0, "That is (1 + 7/8) · 2^7: the exponent field 1111 means 15 − 7 = 8.")
e4m3_missing.wrong_value(448.0, "That is (1 + 6/8) · 2^8, the largest number that exists. The next one is missing.")
e4m3_missing.wrong_value(512.0, "The row goes on in steps of 32, so the next after 448 comes before 512.")
