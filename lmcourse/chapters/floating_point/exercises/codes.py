"""The exercise on the meaning of a bit pattern."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise
from lmcourse.numerics import FORMATS, decode

SMALL = [name for name in FORMATS if name != "fp64"]


def _decode(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return decode(bits, ieee(exponent_bits, mantissa_bits, has_infinity))


def _code_case(name: str, bits: int, format: str) -> Case:
    extra = {} if FORMATS[format].has_infinity else {"has_infinity": False}
    return case(name, bits, *widths(format), **extra)


def _fixed_codes() -> list[Case]:
    cases = [_code_case("zero and subnormals", code, "fp16") for code in (0x0000, 0x03FF, 0x8200)]
    cases += [_code_case("zero and subnormals", code, "e4m3") for code in (0x80, 0x07)]
    cases += [_code_case("the edges of the normal numbers", code, "fp16") for code in (0x0400, 0x7BFF, 0xFBFF)]
    cases += [_code_case("the edges of the normal numbers", code, "e4m3") for code in (0x78, 0xFE)]
    cases += [_code_case("infinity and NaN", code, "fp16") for code in (0xFC00, 0x7C01, 0xFFFF)]
    cases += [_code_case("infinity and NaN", code, "e4m3") for code in (0x7F, 0xFF)]
    cases += [case("infinity and NaN", code, 4, 3) for code in (0x78, 0x7E)]
    cases += [case("formats nobody has built", code, 2, 1) for code in (0b0001, 0b1010, 0b1101, 0b0111)]
    cases += [case("formats nobody has built", code, 2, 2, has_infinity=False) for code in (0b01100, 0b11111)]
    cases += [
        case("formats nobody has built", code, 6, 3, has_infinity=False) for code in (0b0_011111_111, 0b1_111111_111)
    ]
    cases += [case("formats nobody has built", 0b1_000000_001, 6, 3), case("formats nobody has built", 1, 3, 4)]
    cases += [case("wide formats", code, *widths("fp64")) for code in (0x3FB999999999999A, 0x0000000000000001)]
    too_large = [case("codes that do not fit", code, 5, 10) for code in (2**16, 2**16 + 0x3C00, 2**17)]
    return [*cases, *too_large, case("codes that do not fit", -1, 4, 3), case("codes that do not fit", 256, 4, 3)]


def _random_codes(random: Random) -> list[Case]:
    cases = []
    for name in SMALL:
        exponent_bits, mantissa_bits = widths(name)
        minus = 1 << exponent_bits + mantissa_bits
        exponent = random.randrange(1, 2**exponent_bits - 1) << mantissa_bits
        fractions = [random.randrange(1, 2**mantissa_bits) for _ in "12"]
        cases.append(_code_case("any normal number", minus + exponent + fractions[0], name))
        cases.append(_code_case("any subnormal", fractions[1], name))
    return cases


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
        _code_case("minus infinity", 0xFC00, "fp16"),
        _code_case("not a number, negative", 0xFE00, "fp16"),
        _code_case("E5M2, exponent all ones", 0x7C, "e5m2"),
        _code_case("E4M3, exponent all ones but a number", 0x7E, "e4m3"),
        _code_case("E4M3, not a number", 0xFF, "e4m3"),
        case("17 bits are too many for fp16", 0x10000, *widths("fp16")),
        case("a negative code", -1, *widths("fp16")),
    ],
    hidden_cases=lambda random: [*_fixed_codes(), *_random_codes(random)],
    hints=[
        "Split the integer with >> and &: the mantissa is the lowest mantissa_bits bits, the exponent field comes "
        "next.",
        "The bias is 2 ** (exponent_bits - 1) - 1. An exponent field of 0 means no hidden 1, and the exponent is 1 − "
        "bias.",
        "If the exponent is all ones: with has_infinity, mantissa 0 is ±inf and any other is nan. Without it, only a "
        "mantissa of all ones is nan, and everything else is an ordinary number.",
    ],
    # Too many functions of NumPy and PyTorch reinterpret bits for a list of forbidden names.
    forbid=["torch", "numpy", "PIL", *("struct", "array", "pickle", "marshal", "ctypes", "builtins.memoryview")],
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
    "You add the hidden 1 to subnormals, too. When the exponent field is 0 the significand is 0.f, and zero is zero."
)
def hidden_one_in_subnormals(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, hidden_one_always=True)


@decode_bits.misconception(
    "Your subnormals are half of what they should be: their exponent is 1 − bias, not 0 − bias, so that they join the "
    "smallest normal number without a gap."
)
def subnormal_exponent_too_small(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, subnormal_exponent_shift=-1)


@decode_bits.misconception("Your bias is 2^(E−1). The right bias is one less: 127 for 8 exponent bits, not 128.")
def bias_one_too_large(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, bias_shift=1)


@decode_bits.misconception("The sign bit, the highest one, is not used: negative codes come out positive.")
def sign_ignored(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, signed=False)


@decode_bits.misconception(
    "Your minus zero comes out as 0.0. The integer 0 has no sign, and -1 * 0 is 0; the float -1.0 * 0.0 is -0.0."
)
def zero_without_sign(*args: Any, **kwargs: Any) -> float:
    return _decode(*args, **kwargs) or 0


@decode_bits.misconception(
    "An exponent of all ones is read as a number. It is reserved for infinity and NaN. A format without infinity "
    "reserves only the fraction of all ones, for NaN."
)
def nothing_reserved(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, reserved=False)


@decode_bits.misconception(
    "E4M3 has no infinity: with has_infinity=False an exponent of all ones is an ordinary number unless the mantissa "
    "is all ones as well. That is how E4M3 reaches 448."
)
def e4m3_like_ieee(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_decode(bits, exponent_bits, mantissa_bits, True)


@decode_bits.misconception("The fraction is mantissa / 2^M: the first fraction bit is worth one half, not one.")
def fraction_doubled(*args: Any, **kwargs: Any) -> float:
    return _wrong_decode(*args, **kwargs, fraction_shift=-1)


@decode_bits.misconception(
    "NaN is not just 'all bits set to 1': the sign bit may be 0 or 1, and in IEEE formats any mantissa except 0 gives "
    "NaN."
)
def nan_only_when_all_ones(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    if bits == 2 ** (1 + exponent_bits + mantissa_bits) - 1:
        return math.nan
    value = _wrong_decode(bits, exponent_bits, mantissa_bits, has_infinity)
    return _wrong_decode(bits, exponent_bits, mantissa_bits, reserved=False) if math.isnan(value) else value


@decode_bits.misconception("Minus infinity comes out as +∞: the sign bit counts for infinity, too.")
def infinity_without_sign(*args: Any, **kwargs: Any) -> float:
    value = _decode(*args, **kwargs)
    return abs(value) if math.isinf(value) else value


@decode_bits.misconception(
    "Without infinity there still is a NaN: its exponent and its fraction are all ones. You read it as a number."
)
def no_nan_without_infinity(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _wrong_decode(bits, exponent_bits, mantissa_bits, has_infinity, reserved=has_infinity)


@decode_bits.misconception("A code with more bits than the format, or a negative one, is invalid: raise ValueError.")
def any_code_accepted(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return _decode(bits % 2 ** (1 + exponent_bits + mantissa_bits), exponent_bits, mantissa_bits, has_infinity)


@decode_bits.misconception(
    "You return NaN for every exponent of all ones where there is no infinity; only a fraction of all ones is NaN. "
    "You also lose the sign of zero: -1 * 0 is the integer 0."
)
def all_ones_are_nan_and_zero_has_no_sign(*args: Any, **kwargs: Any) -> float:
    value = e4m3_like_ieee(*args, **kwargs)
    without_infinity = not (args[3] if len(args) > 3 else kwargs.get("has_infinity", True))
    return math.nan if math.isinf(value) and without_infinity else value or 0.0


@decode_bits.misconception("You accept a negative code. No bit pattern is a negative integer: raise ValueError.")
def negative_code_accepted(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    code = bits % 2 ** (1 + exponent_bits + mantissa_bits) if bits < 0 else bits
    return _decode(code, exponent_bits, mantissa_bits, has_infinity)


@decode_bits.misconception(
    "You read the fraction from the wrong end: its highest bit is worth one half, and its lowest one 2^−M."
)
def fraction_reversed(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    if not 0 <= bits < 2 ** (1 + exponent_bits + mantissa_bits):
        raise ValueError("the code does not fit")
    front, mantissa = divmod(bits, 2**mantissa_bits)
    turned = int(f"{mantissa:0{mantissa_bits}b}"[::-1], 2)
    return _decode(front * 2**mantissa_bits + turned, exponent_bits, mantissa_bits, has_infinity)


@decode_bits.misconception(
    "You treat only zero specially. An exponent field of 0 always means 0.f · 2^(1 − bias), without the hidden 1."
)
def only_zero_is_special(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    value = _wrong_decode(bits, exponent_bits, mantissa_bits, has_infinity, hidden_one_always=True)
    return value if bits % 2 ** (exponent_bits + mantissa_bits) else _decode(bits, exponent_bits, mantissa_bits)


@decode_bits.misconception("Your bias is 127 in every format. It depends on the exponent bits: 2^(E−1) − 1.")
def bias_of_fp32(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    shift = 128 - 2 ** (exponent_bits - 1)
    return _wrong_decode(bits, exponent_bits, mantissa_bits, has_infinity, bias_shift=shift)


@decode_bits.misconception(
    "You return infinity for every exponent of all ones. It is infinity only if the fraction is 0, and NaN otherwise."
)
def infinity_for_nan(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    value = _decode(bits, exponent_bits, mantissa_bits, has_infinity)
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    return sign * math.inf if math.isnan(value) and has_infinity else value


@decode_bits.variant
def from_its_digits(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Any:
    digits = f"{bits:0{1 + exponent_bits + mantissa_bits}b}"
    if bits < 0 or len(digits) > 1 + exponent_bits + mantissa_bits:
        raise ValueError("the code has too many bits for the format")
    field, fraction = digits[1 : 1 + exponent_bits], digits[1 + exponent_bits :]
    sign = "-" if digits[0] == "1" else "+"
    if "0" not in field and (has_infinity or "0" not in fraction):
        return float("nan" if "1" in fraction or not has_infinity else f"{sign}inf")
    whole = "0" if "1" not in field else "1"
    exponent = max(int(field, 2), 1) - 2 ** (exponent_bits - 1) + 1
    return float(f"{sign}{int(whole + fraction, 2)}") * 2.0 ** (exponent - mantissa_bits)


@decode_bits.variant
def with_fractions(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    sign, magnitude = divmod(bits, 1 << exponent_bits + mantissa_bits)
    if sign not in (0, 1):
        raise ValueError(bits)
    field, mantissa = divmod(magnitude, 1 << mantissa_bits)
    highest = (1 << exponent_bits) - 1
    if field == highest and has_infinity and mantissa:
        return math.nan
    if field == highest and has_infinity:
        return (math.inf, -math.inf)[sign]
    if field == highest and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    significand = Fraction(mantissa, 1 << mantissa_bits) + (field > 0)
    value = significand * Fraction(2) ** (max(field, 1) - (1 << exponent_bits - 1) + 1)
    return math.copysign(value, -sign or 1)


@decode_bits.variant
def bit_by_bit(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    width = 1 + exponent_bits + mantissa_bits
    if bits < 0 or bits.bit_length() > width:
        raise ValueError
    sign, *rest = [bool(bits & 1 << place) for place in reversed(range(width))]
    exponent, fraction = rest[:exponent_bits], rest[exponent_bits:]
    if all(exponent) and has_infinity:
        return math.nan if any(fraction) else math.inf * (1 - 2 * sign)
    if all(exponent) and all(fraction):
        return math.nan
    value = float(any(exponent))
    for place, one in enumerate(fraction, 1):
        value += one / 2**place
    power = sum(one << place for place, one in enumerate(reversed(exponent))) or 1
    for _ in range(power, (1 << exponent_bits - 1) - 1):
        value /= 2
    for _ in range((1 << exponent_bits - 1) - 1, power):
        value *= 2
    return -value if sign else value


@decode_bits.variant
def as_an_integer_times_a_power(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Any:
    if bits >> 1 + exponent_bits + mantissa_bits:  # a negative integer shifted right never becomes 0
        raise ValueError("does not fit")
    top = 1 << exponent_bits + mantissa_bits
    if bits & top:
        return -as_an_integer_times_a_power(bits ^ top, exponent_bits, mantissa_bits, has_infinity)
    infinity = top - (1 << mantissa_bits)
    if has_infinity and bits >= infinity:
        return math.inf if bits == infinity else math.nan
    if bits == top - 1:
        return math.nan
    if bits < 1 << mantissa_bits:
        return math.ldexp(bits, 2 - (1 << exponent_bits - 1) - mantissa_bits)
    steps = bits % (1 << mantissa_bits) + (1 << mantissa_bits)
    return math.ldexp(steps, (bits >> mantissa_bits) - (1 << exponent_bits - 1) + 1 - mantissa_bits)
