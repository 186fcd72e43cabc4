"""The exercise on the value at which a running sum stops growing."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from lmcourse import numerics
from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise


def _stall_cases(random: Random) -> list[Case]:
    fractions = [random.uniform(0.51, 0.69), random.uniform(0.72, 0.99)]
    exact = [numerics.round_to(fraction * 2.0 ** random.randint(-7, -1), ieee(5, 10)) for fraction in fractions]
    powers = [2.0 ** (sign * random.randint(2, 8)) for sign in (1, -1)]
    return [
        case("powers of two", 0.5, *widths("fp16")),
        case("powers of two", 2.0, *widths("bf16")),
        case("powers of two", 2.0**-10, *widths("e5m2")),
        case("just above a power of two", 1.0 + 2.0**-7, *widths("bf16")),
        case("just below a power of two", 1.0 - 2.0**-8, *widths("bf16")),
        case("subnormal increments", 2.0**-24, *widths("fp16")),
        case("subnormal increments", 3 * 2.0**-24, *widths("fp16")),
        case("other formats", 0.375, *widths("e5m2")),
        case("other formats", 48.0, 6, 5),
        case("other formats", 1.0, 8, 13),
        *(case("other increments", value, 5, 10) for value in exact),
        *(case("powers of two", value, *widths("bf16")) for value in powers),
    ]


stall_point = Exercise(
    "stall_point",
    points=3,
    minutes=6,
    difficulty=2,
    reference=lambda increment, e, m: numerics.stall_point(increment, ieee(e, m)),
    tolerance=EXACT,
    seconds=30.0,  # the answer may simulate thousands of additions, each rounded by the learner's own code
    cases=[
        case("0.01 in bf16", numerics.round_to(0.01, ieee(8, 7)), *widths("bf16")),
        case("0.01 in fp16", numerics.round_to(0.01, ieee(5, 10)), *widths("fp16")),
        case("counting in bf16", 1.0, *widths("bf16")),
        case("0.75 in fp16", 0.75, *widths("fp16")),
        case("0.375 in a format of 4 + 3 bits", 0.375, 4, 3),
        edge(case("three times the smallest subnormal of fp16", 3 * 2.0**-24, *widths("fp16"))),
    ],
    hidden_cases=_stall_cases,
    hints=[
        "Adding x to s changes nothing when s + x rounds back to s. How small must x be, measured in ulps of s?",
        "Half an ulp or less: a tie goes back to s, because by then s is a power of two, and so it is even.",
        "Between two powers of two the gap does not change, so a sum that moves at the lower one reaches the upper "
        "one. Try … ¼, ½, 1, 2, 4 …: which is the first with ulp(s) / 2 ≥ x? Or solve this for the exponent of s.",
    ],
)


@stall_point.variant
def solved_for_the_sum(increment: float, exponent_bits: int, mantissa_bits: int) -> Any:
    return 2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1)


stall_point.slips(
    solved_for_the_sum,
    {
        "mantissa_bits + 1 → mantissa_bits": "Your sum stalls when the increment is one ulp or less. It still grows "
        "then: only an increment of half an ulp or less is rounded away.",
        "math.ceil → math.floor ;; mantissa_bits + 1 → mantissa_bits + 2": "Your sum gets past the point where "
        "increment = ulp / 2. That is a tie, and s is even: it stays at s.",
        "math.ceil → math.floor": "Your sum stops one power of two too early: at the last one where the increment is "
        "still more than half a gap.",
        "2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1) → increment * 2.0**mantissa_bits": "increment / "
        "ε is a good guess, but gaps change only at powers of two, and half a gap is already lost.",
        "2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1) → increment * 2.0 ** "
        "(mantissa_bits + 1)": "2 · increment / ε would be right if gaps grew smoothly. They change only at powers of "
        "two, and there the sum stops.",
        "2.0 ** (math.ceil(math.log2(increment)) + mantissa_bits + 1) → (2 - 2.0**-mantissa_bits) * 2.0 ** (2 ** "
        "(exponent_bits - 1) - 1)": "That is the largest finite number. The sum stops growing long before it "
        "overflows.",
        "mantissa_bits + 1 → 8": "You take 8 for M + 1, as in bf16. Another format has other mantissa bits.",
        "2.0 ** ( → 2.0 ** max(0, ": "Your sums are never below 1. A small increment stalls there: search downwards, "
        "too.",
        "math.ceil → round": "You round the logarithm to the nearest whole number. Round it up: at the power of two "
        "below, the sum still grows.",
        "math.ceil(math.log2(increment)) +  → ": "2^(M+1) is where counting by one stops. Another increment stalls "
        "elsewhere: compare it with the gap.",
    },
)


@stall_point.variant
def by_adding(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    lowest = 2 - 2 ** (exponent_bits - 1)
    sums = [0.0]
    while True:
        exact = sums[-1] + increment
        gap = 2.0 ** (max(math.frexp(exact)[1] - 1, lowest) - mantissa_bits)
        after = round(exact / gap) * gap
        if after == sums[-1]:
            return sums[-1]
        sums.append(after)


stall_point.slips(
    by_adding,
    {
        "return sums[-1] → return len(sums) - 1": "That is how many additions it takes, not the sum that they reach.",
        "after == sums[-1] → len(sums) > 1000": "You stop after 1,000 additions. Some sums still grow then: stop when "
        "an addition changes nothing.",
        "return sums[-1] → return sums[-2]": "That is the last sum but one. One more addition still changes it; then "
        "nothing does.",
    },
)
