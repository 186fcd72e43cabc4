"""The exercise on the width of a gated layer that has as many parameters as a plain one."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _matched(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    plain = 2 * d_model * (expansion * d_model)
    width = multiple
    while 3 * d_model * width < plain:
        width += multiple
    return width


def _matched_cases(random: Random) -> list[Case]:
    def width(expansion: int = 4, multiple: int = 1) -> int:
        """A random width whose exact match is in the lower half between two multiples, so that rounding up and to
        nearest differ."""
        while True:
            d_model = random.randint(100, 9000)
            if 0 < 2 * (2 * expansion * d_model % (3 * multiple)) < 3 * multiple:
                return d_model

    return [
        case("the smallest", 1),
        case("less than a multiple", 8, multiple=256),
        case("nothing to round", 192, multiple=64),
        case("other expansions", 1000, expansion=1),
        case("other multiples", 1000, multiple=96),
        *(case("other widths", width()) for _ in range(2)),
        *(case("other expansions", width(expansion), expansion=expansion) for expansion in (2, 5)),
        *(case("other multiples", width(4, multiple), multiple=multiple) for multiple in (32, 64, 128)),
    ]


matched_d_ff = Exercise(
    "matched_d_ff",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_matched,
    cases=[
        case("d = 12", 12),
        case("d = 4096", 4096),
        case("LLaMA-7B: d = 4096, multiples of 256", 4096, multiple=256),
        case("LLaMA-13B: d = 5120, multiples of 256", 5120, multiple=256),
        case("nothing to round: d = 3072", 3072, multiple=256),
        case("an expansion of 6", 1024, expansion=6, multiple=64),
    ],
    hidden_cases=_matched_cases,
    hints=[
        "Set 3·d·w equal to 2·d·(expansion·d) and solve for w.",
        "w = 2·expansion·d / 3. Round that up to a multiple, in one step.",
        "With whole numbers, ceil(a / b) is -(-a // b). Here a = 2·expansion·d and b = 3·multiple.",
    ],
)


@matched_d_ff.variant
def rounded_up_by_ceil(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    return math.ceil(2 * expansion * d_model / 3 / multiple) * multiple


matched_d_ff.slips(
    rounded_up_by_ceil,
    {
        "2 * expansion → expansion": "You make the layer smaller *by* two thirds, so a third of the width is left. "
        "Count the weights of both layers again.",
        "2 * expansion * d_model / 3 → expansion * d_model": "You kept the width. Three matrices instead of two make "
        "the layer 1.5 times as large.",
        "2 * expansion * d_model / 3 → 3 * expansion * d_model / 2": "You multiplied by 3/2. The third matrix makes "
        "each of them narrower, not wider.",
        "math.ceil → math.floor ;; / multiple) → / multiple + 0.5)": "You round to the nearest multiple. LLaMA's "
        "recipe rounds up.",
        "math.ceil → math.floor": "You round down: the gated layer gets fewer parameters than the plain one.",
        "math.ceil → math.floor ;; / multiple) → / multiple + 1)": "You round up a width that is already a multiple. "
        "It should stay as it is.",
        " / multiple) * multiple → ) // multiple * multiple": "You round the width down to a multiple. The gated layer "
        "then has fewer weights than the plain one.",
        "math.ceil(2 * expansion * d_model / 3 / multiple) * multiple → math.ceil(expansion * d_model / multiple) * "
        "multiple * 2 // 3": "You round the plain width to a multiple, and then take two thirds, which is no "
        "multiple. Round last.",
        "/ multiple) * multiple → / 256) * 256": "You always round to multiples of 256. Use `multiple`.",
        "2 * expansion * d_model / 3 / multiple) * multiple → 8 / 3 * d_model) // 1 ;; math.ceil → math.floor": "You "
        "cut 8/3 of d to a whole number, and use neither `expansion` nor `multiple`.",
        "/ multiple) * multiple → / multiple) * multiple * 2": "You return gate and value together. The width is that "
        "of one of them: each is d × width.",
        "2 * expansion → 8": "You do not use the expansion: you always take 8/3 of d.",
        " / multiple) * multiple → )": "`multiple` is not used: round the width up to a multiple of it.",
        "2 * expansion * d_model / 3 → expansion * d_model / 2": "You halve the width. A gated layer has three "
        "matrices, not four.",
        "d_model / 3 → d_model // 3": "You cut two thirds of expansion · d to a whole number before you round up to a "
        "multiple. Round up once, from the exact width.",
    },
)
