"""The exercise on the meaning of a bit pattern."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from lmcourse.chapters.floating_point.exercises.formats import BIAS, ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise
from lmcourse.numerics import FORMATS, decode


def _decode(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> float:
    return decode(bits, ieee(exponent_bits, mantissa_bits, has_infinity))


def _code_case(name: str, bits: int, format: str) -> Case:
    extra = {} if FORMATS[format].has_infinity else {"has_infinity": False}
    return case(name, bits, *widths(format), **extra)


def _fixed_codes() -> list[Case]:
    codes = {
        ("zero and subnormals", "fp16"): (0x0000, 0x03FF, 0x8200),
        ("zero and subnormals", "e4m3"): (0x80, 0x07),
        ("the edges of the normal numbers", "fp16"): (0x0400, 0x7BFF, 0xFBFF),
        ("the edges of the normal numbers", "e4m3"): (0x78, 0xFE),
        ("infinity and NaN", "fp16"): (0xFC00, 0x7C01, 0xFFFF),
        ("infinity and NaN", "e4m3"): (0x7F, 0xFF),
        ("wide formats", "fp64"): (0x3FB999999999999A, 0x0000000000000001),
        ("codes that do not fit", "fp16"): (2**16, 2**16 + 0x3C00, 2**17),
        ("codes that do not fit", "e4m3"): (-1, 256),
    }
    unusual = [(1, 2, 1), (0b1010, 2, 1), (0b1101, 2, 1), (0b1_000000_001, 6, 3), (1, 3, 4)]
    without = [(0b01100, 2, 2), (0b11111, 2, 2), (0b0_011111_111, 6, 3), (0b1_111111_111, 6, 3)]
    return [
        *(_code_case(name, code, format) for (name, format), listed in codes.items() for code in listed),
        *(case("formats nobody has built", *code) for code in unusual),
        *(case("formats nobody has built", *code, has_infinity=False) for code in without),
    ]


def _random_codes(random: Random) -> list[Case]:
    cases = []
    for name in [name for name in FORMATS if name != "fp64"]:
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
        _code_case("0.1 in fp32", 0x3DCCCCCD, "fp32"),
        _code_case("the largest fp16 number", 0x7BFF, "fp16"),
        _code_case("the smallest normal fp16 number", 0x0400, "fp16"),
        _code_case("−1.25 in E5M2", 0xBD, "e5m2"),
        _code_case("1.125 in E4M3", 0x39, "e4m3"),
        _code_case("zero", 0x0000, "fp16"),
        _code_case("minus zero", 0x8000, "fp16"),
        _code_case("the smallest fp16 subnormal", 0x0001, "fp16"),
        _code_case("minus infinity", 0xFC00, "fp16"),
        _code_case("not a number, negative", 0xFE00, "fp16"),
        _code_case("E4M3, exponent all ones but a number", 0x7E, "e4m3"),
        _code_case("E4M3, not a number", 0x7F, "e4m3"),
        _code_case("E4M3, not a number, negative", 0xFF, "e4m3"),
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


@decode_bits.variant
def field_by_field(bits: int, exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Any:
    if not 0 <= bits < 2 ** (1 + exponent_bits + mantissa_bits):
        raise ValueError("the code does not fit")
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    fraction = mantissa / 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        if has_infinity:
            return math.nan if mantissa else sign * math.inf
        if mantissa == 2**mantissa_bits - 1:
            return math.nan
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias)
    return sign * math.ldexp(1 + fraction, exponent - bias)


decode_bits.slips(
    field_by_field,
    {
        "(fraction, 1 - bias) → (1 + fraction, 0 - bias)": "You add the hidden 1 to subnormals, too. When the exponent "
        "field is 0 the significand is 0.f, and zero is zero.",
        "(fraction, 1 - bias) → (fraction, 0 - bias)": "Your subnormals are half of what they should be: their "
        "exponent is 1 − bias, not 0 − bias, so that they join the smallest normal number without a gap.",
        "bias = 2 ** (exponent_bits - 1) - 1 → bias = 2 ** (exponent_bits - 1)": BIAS,
        "bits >> mantissa_bits → bits >> exponent_bits": "You shift by the exponent's own bits. The mantissa is below "
        "it: shift by `mantissa_bits`.",
        "-1.0 if → 1.0 if": "The sign bit, the highest one, is not used: negative codes come out positive.",
        "if exponent == 0: → if exponent == mantissa == 0:\n        return 0.0\n    if exponent == 0:": "Your minus "
        "zero comes out as 0.0. The integer 0 has no sign, and -1 * 0 is 0; the float -1.0 * 0.0 is -0.0.",
        "exponent == 2**exponent_bits - 1 → False": "An exponent of all ones is read as a number. It is reserved for "
        "infinity and NaN. A format without infinity reserves only the fraction of all ones, for NaN.",
        "if has_infinity: → if True:": "E4M3 has no infinity: with has_infinity=False an exponent of all ones is an "
        "ordinary number unless the mantissa is all ones as well. That is how E4M3 reaches 448.",
        "mantissa / 2**mantissa_bits → mantissa / 2 ** (mantissa_bits - 1)": "The fraction is mantissa / 2^M: the "
        "first fraction bit is worth one half, not one.",
        "exponent == 2**exponent_bits - 1: → bits == 2 ** (1 + exponent_bits + mantissa_bits) - 1:\n        return "
        "math.nan\n    if exponent == 2**exponent_bits - 1 and mantissa == 0:": "NaN is not just 'all bits set to 1': "
        "the sign bit may be 0 or 1, and in IEEE formats any mantissa except 0 gives NaN.",
        "sign * math.inf → math.inf": "Minus infinity comes out as +∞: the sign bit counts for infinity, too.",
        "if mantissa == 2**mantissa_bits - 1 → if bits + 1 == 2 ** (1 + exponent_bits + mantissa_bits)": "Without "
        "infinity you find NaN only where the sign bit is 1. Its exponent and fraction are all ones, with either sign.",
        "mantissa == 2**mantissa_bits - 1 → False": "Without infinity there still is a NaN: its exponent and its "
        "fraction are all ones. You read it as a number.",
        'raise ValueError("the code does not fit") → bits %= 2 ** (1 + exponent_bits + mantissa_bits)': "A code with "
        "more bits than the format, or a negative one, is invalid: raise ValueError.",
        "mantissa == 2**mantissa_bits - 1 → True ;; (fraction, 1 - bias) → (fraction, 1 - bias) or 0.0": "You return "
        "NaN for every exponent of all ones where there is no infinity; only a fraction of all ones is NaN. You also "
        "lose the sign of zero: -1 * 0 is the integer 0.",
        "0 <= bits → bits": "You accept a negative code. No bit pattern is a negative integer: raise ValueError.",
        'bits % 2**mantissa_bits → int(f"{bits % 2**mantissa_bits:0{mantissa_bits}b}"[::-1], 2)': "You read the "
        "fraction from the wrong end: its highest bit is worth one half, and its lowest one 2^−M.",
        "ldexp(1 + fraction → ldexp(fraction": "Your normal numbers lack the hidden 1: their significand is 1.f. Only "
        "an exponent field of 0 means 0.f.",
        "(fraction, 1 - bias) → (1 + fraction, 1 - bias)": "You add the hidden 1 to subnormals, too. When the exponent "
        "field is 0 the significand is 0.f, and zero is zero.",
        "exponent == 0 → exponent == mantissa == 0": "You treat only zero specially. An exponent field of 0 always "
        "means 0.f · 2^(1 − bias), without the hidden 1.",
        "(fraction, 1 - bias) → (fraction, 0 - bias) or 0.0": "Your subnormals are half of what they should be: their "
        "exponent is 1 − bias. You also lose the sign of zero: -1 * 0 is the integer 0.",
        "bias = 2 ** (exponent_bits - 1) - 1 → bias = 127": "Your bias is 127 in every format. It depends on the "
        "exponent bits: 2^(E−1) − 1.",
        "math.nan if mantissa else  → ": "You return infinity for every exponent of all ones. It is infinity only if "
        "the fraction is 0, and NaN otherwise.",
    },
)
