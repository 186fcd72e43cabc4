"""The exercise on rounding to the nearest number of a format."""

from __future__ import annotations

import math
from random import Random

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
        case("a subnormal of bf16", 3.2e-40, *widths("bf16")),
        case("too small for bf16", -1e-41, *widths("bf16")),
        case("too large for fp16", 70000.0, *widths("fp16")),
        case("too far below zero for fp16", -70000.0, *widths("fp16")),
        case("just above the largest fp16 number", 65519.0, *widths("fp16")),
        case("half a step above the largest fp16 number", 65520.0, *widths("fp16")),
        case("half a step below it", 65488.0, *widths("fp16")),
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


@round_to.variant
def in_steps_of_the_gap(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    lowest = 2 - 2 ** (exponent_bits - 1)
    largest = (2 - 2.0**-mantissa_bits) * 2.0 ** (1 - lowest)
    step = 2.0 ** (max(math.frexp(x)[1] - 1, lowest) - mantissa_bits)
    size = round(abs(x) / step) * step
    return math.copysign(size if size <= largest else math.inf, x)


round_to.slips(
    in_steps_of_the_gap,
    {
        "round( → math.trunc(": "You cut off the extra bits. Round to the nearest value, up or down.",
        "round(abs(x) / step) → math.floor(abs(x) / step + 0.5)": "You round ties away from zero, as at school. In "
        "IEEE arithmetic a tie goes to the even neighbour.",
        "round(abs(x) / step) → math.ceil(abs(x) / step - 0.5)": "You round ties towards zero. In IEEE arithmetic a "
        "tie goes to the even neighbour, up or down.",
        "round(abs(x) / step) → abs(math.floor(x / step))": "You always round down; for negative numbers that is away "
        "from zero. Round to the nearest.",
        "size if size <= largest else math.inf → size": "There is no number that large in this format: beyond the "
        "largest finite one comes infinity.",
        "size if size <= largest else math.inf → min(size, largest)": "You stop at the largest finite number. Rounding "
        "to nearest overflows to infinity.",
        "round(abs(x) / step) → (abs(x) >= 2.0**lowest and round(abs(x) / step))": "You turn everything below the "
        "smallest normal number into zero. Subnormals fill that gap: fp16 still has 1024 steps there.",
        "math.inf, x) → math.inf, x) or 0": "You lose the sign of zero: a negative number that rounds to zero becomes "
        "-0.0.",
        "if size <= largest → if abs(x) <= largest": "You call everything infinite that is larger than the largest "
        "finite number. Round first: a number less than half a step above it is rounded down.",
        "size if size <= largest → min(size, largest) if abs(x) <= largest + step / 2": "Half a step above the largest "
        "finite number, you round down. That is a tie, and its even neighbour would be the next power of two, so it "
        "rounds to infinity.",
        "math.frexp(x)[1] - 1 → math.frexp(x)[1] - (abs(x) > largest)": "You measure x in steps of the gap above the "
        "next power of two. Between two powers of two the gap is that of the lower one.",
    },
)
