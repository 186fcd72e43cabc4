"""The exercise on the largest number of a format."""

from __future__ import annotations

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
    drawn = [(random.randint(3, 9), random.randint(2, 20)) for _ in range(2)]
    with_infinity = [(2, 1), (2, 2), (3, 4), (4, 3), (8, 10), (9, 2), *drawn]
    without = [(2, 2), (3, 1), (5, 2), (6, 9), *drawn]
    cases = [case("other widths", *shape) for shape in with_infinity]
    return cases + [case("other widths without infinity", *shape, has_infinity=False) for shape in without]


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
        case("fp64", 11, 52),
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


@max_finite.variant
def field_and_fraction(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> Any:
    bias = 2 ** (exponent_bits - 1) - 1
    field = 2**exponent_bits - (2 if has_infinity else 1)
    steps = 1 if has_infinity else 2
    return (2 - steps * 2.0**-mantissa_bits) * 2.0 ** (field - bias)


max_finite.slips(
    field_and_fraction,
    {
        "- (2 if has_infinity else 1) → - 1": "You used the exponent of all ones, which IEEE formats keep for infinity "
        "and NaN: twice too large.",
        "- (2 if has_infinity else 1) → - 1 ;; 1 if has_infinity else 2 → 1": "You use the pattern of all ones in "
        "every format. IEEE keeps its whole exponent for infinity and NaN, and E4M3 that one pattern for NaN.",
        "(field - bias) → field": "You leave out the bias: the exponent is the field minus 2^(E−1) − 1.",
        "(2 - steps * 2.0**-mantissa_bits) → 2.0": "That is the power of two just above. A significand is always below "
        "2.",
        "(2 - steps * 2.0**-mantissa_bits) → 1.0": "That is the largest power of two. The fraction adds nearly as much "
        "again.",
        "1 if has_infinity else 2 → 1": "1.111 × 2^8 = 480 is the one pattern that E4M3 uses for NaN. The largest "
        "number is one step below: 448.",
        "(2 - steps → (1 - steps": "Your significand is below 1: the hidden 1 is missing. Add 1 to the largest "
        "fraction.",
        "(2 if has_infinity else 1) → 2 ;; 1 if has_infinity else 2 → 1": "Without infinity the exponent of all ones "
        "is an ordinary one: E4M3 reaches 448, not 240.",
        "bias = 2 ** (exponent_bits - 1) - 1 → bias = 2 ** (exponent_bits - 1)": "Your bias is 2^(E−1). The right bias "
        "is one less, so your result is half the right one.",
        "1 if has_infinity else 2 → 2": "You leave out the fraction of all ones in every format. With infinity, NaN "
        "has an exponent of its own, and the fraction of the largest number is all ones.",
        "(2 if has_infinity else 1) → 2": "Without infinity you leave out the exponent of all ones, and the fraction "
        "of all ones too. Only both together are NaN.",
    },
)
