"""The exercise on the gap between a number and the next."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise


def _ulp_cases(random: Random) -> list[Case]:
    fixed = {
        "fp16": [-1.5, 0.75, 65504.0, 2.0**-14, 2.0**-14 * (1 - 2.0**-10), -(2.0**-24), -0.0],
        "fp32": [2.0**-29, -(2.0**-93), 2.0**40, 2.0**-126, 2.0**-127, 3.0 * 2.0**-149],
        "e5m2": [0.0, 2.0**-16, -(2.0**-15), 57344.0],
    }
    cases = [case("edges of the format", value, *widths(name)) for name, values in fixed.items() for value in values]
    cases += [case("formats nobody has built", value, 3, 4) for value in (0.3, 0.1, -9.0)]
    signs, powers = (1, -1, 1, -1), [sign * random.randint(2, 12) for sign in (1, 1, -1, -1)]
    return cases + [
        case("any magnitude", sign * random.uniform(1.6, 1.99) * 2.0**power, *widths("fp16"))
        for sign, power in zip(signs, powers, strict=True)
    ]


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
        case("a negative number", -5.0, *widths("fp16")),
        case("0.1, in fp32", 0.1, *widths("fp32")),
        case("a power of two", 2.0**-29, *widths("fp32")),
        case("just below 1024, with 52 mantissa bits", 1024 - 2.0**-43, 8, 52),
        case("an fp16 subnormal", 2.0**-20, *widths("fp16")),
        case("zero", 0.0, *widths("fp16")),
    ],
    hidden_cases=_ulp_cases,
    hints=[
        "Between 2^e and 2^(e+1) there are 2^M equal steps. Find e first.",
        "math.frexp(x) gives (f, n) with x = f · 2^n and ½ ≤ |f| < 1, so e = n − 1, exactly.",
        "e never falls below 1 − bias: subnormals share the step of the smallest normal numbers.",
    ],
    forbid=["math.ulp", ".nextafter", ".spacing", ".finfo"],
)
ulp.equivalent_mutant(
    "return 2.0 ** (max(exponent, lowest) - mantissa_bits) → return 2.0 ** (max(lowest, exponent) - mantissa_bits)",
    "The larger of two integers is the same, whichever comes first.",
)


@ulp.variant
def from_the_exponent(x: float, exponent_bits: int, mantissa_bits: int) -> Any:
    lowest = 2 - 2 ** (exponent_bits - 1)
    exponent = math.frexp(x)[1] - 1 if x else lowest
    return 2.0 ** (max(exponent, lowest) - mantissa_bits)


ulp.slips(
    from_the_exponent,
    {
        "(max(exponent, lowest) - mantissa_bits) → -mantissa_bits": "That is the gap at 1, the machine epsilon. The "
        "gap doubles with every power of two.",
        "2.0 ** (max(exponent, lowest) - mantissa_bits) → abs(x) * 2.0**-mantissa_bits": "Your gap grows smoothly with "
        "x. Real gaps stay equal from one power of two to the next, then double at once.",
        "math.frexp(x)[1] - 1 → round(math.log2(abs(x)))": "You take the exponent of the nearest power of two. Just "
        "below 2 the exponent is still 0: round down.",
        "math.frexp(x)[1] - 1 → math.ceil(math.log2(abs(x)))": "Between two powers of two you give the gap of the "
        "upper one. Give the gap of the lower one.",
        "math.frexp(x)[1] - 1 → int(math.log2(abs(x)))": "For numbers below 1 your exponent is one too large: int() "
        "cuts −3.3 to −3, towards zero. Round it down, to −4.",
        "- mantissa_bits → - mantissa_bits - 1": "That is half a gap: the largest rounding error, not the distance to "
        "the next number.",
        "lowest = 2 - → lowest = 1 -": "Your gap between subnormals is half the right one. Their exponent is 1 − bias, "
        "with a bias of 2^(E−1) − 1; yours is one lower.",
        "math.frexp(x)[1] - 1 if x else lowest → math.floor(math.log2(x)) ;; max(exponent, lowest) → "
        "exponent": "A negative number or zero has no logarithm: start from abs(x), and treat everything below the "
        "smallest normal number as if it were that number.",
        "math.frexp(x)[1] - 1 if x else lowest → math.floor(math.log2(abs(x))) ;; max(exponent, lowest) "
        "→ exponent": "Zero has no logarithm, and below the smallest normal number your gap keeps shrinking. Treat "
        "everything down there as if it were the smallest normal number.",
        "math.frexp(x)[1] - 1 → math.ceil(math.log2(abs(x))) - 1": "At a power of two you give the gap below it. The "
        "next larger number is twice as far away.",
        "math.frexp(x)[1] - 1 → math.floor(math.log(abs(x), 2))": "At 2^-29 you give the gap below it. math.log(x, 2), "
        "a quotient of two rounded logarithms, is −29.000000000000004 there, and floor makes −30 of that. math.frexp "
        "gives the exponent exactly.",
        "math.frexp(x)[1] - 1 → math.floor(math.log2(abs(x)))": "Just below 1024 you give the gap above 1024. "
        "math.log2 rounds to 10.0 there, although the exponent is still 9. math.frexp gives it exactly.",
        "max(exponent, lowest) → exponent": "You let the gap shrink below the smallest normal number. It stays the "
        "same from there down to zero: the exponent is never below 1 − bias.",
        "2 - 2 ** (exponent_bits - 1) → -126": "Your lowest exponent is that of fp32, -126, in every format. It "
        "depends on the exponent bits: 1 − bias, and the bias is 2^(E−1) − 1.",
        "1 if x else → 1 if x > 0 else": "You take each negative number for a subnormal one. The gap depends on |x|.",
        "max(exponent, lowest) → max(exponent, lowest - 1)": "Your gap shrinks once more below the smallest normal "
        "number. Subnormals have the gap of the exponent 1 − bias.",
        "[1] - 1 → [1]": "You take the exponent of math.frexp as it is. Its significand is below 1, so the exponent is "
        "one larger than the format's: subtract 1.",
        "2.0 ** (max(exponent, lowest) - mantissa_bits) → max(abs(x), 2.0**lowest) * "
        "2.0**-mantissa_bits": "You multiply |x| by 2^−M, which is the gap only at powers of two. Between them the gap "
        "stays that of the power of two below.",
    },
)
