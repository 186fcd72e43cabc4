"""The exercise on the interval that a written decimal stands for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _error(digits: int, exponent: int) -> float:
    return float(Fraction(1, 2) * Fraction(10) ** (exponent - digits + 1))


def _decimal_cases(random: Random) -> list[Case]:
    exponents = [random.randint(10, 30), -random.randint(10, 30)]
    return [
        case("one digit", digits=1, exponent=0),
        case("one digit", digits=1, exponent=-3),
        case("more digits than the exponent", digits=9, exponent=3),
        case("as many digits as the exponent", digits=5, exponent=5),
        case("very small and very large", digits=3, exponent=-250),
        case("very small and very large", digits=3, exponent=250),
        *(case("other numbers", digits=random.randint(2, 9), exponent=exponent) for exponent in exponents),
    ]


decimal_error = Exercise(
    "decimal_error",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_error,
    tolerance=Tolerance(1e-13),  # the answer may compute a power of ten as a product of up to 250 rounded factors
    cases=[
        case("Avogadro's number, four digits", digits=4, exponent=23),
        case("3.14", digits=3, exponent=0),
        case("the charge of an electron, 1.602e-19", digits=4, exponent=-19),
    ],
    hidden_cases=_decimal_cases,
    hints=[
        "In 6.022e23 the last digit stands for 0.001e23. How far off can the true value be before you would write a "
        "different digit?",
        "Rounding to the nearest gives an error of at most half a step of the last digit.",
        "The step of the last digit is 10 ** (exponent - (digits - 1)).",
    ],
)


@decimal_error.variant
def half_a_step(digits: int, exponent: int) -> float:
    return 0.5 * 10.0 ** (exponent - digits + 1)


decimal_error.slips(
    half_a_step,
    {
        "0.5 *  → ": "That is a whole step of the last digit. A number rounded to the nearest is off by half a step at "
        "most.",
        "exponent - digits + 1) → 1 - digits)": "That is the error of the significand alone: it still has to be scaled "
        "by 10 ** exponent.",
        "digits + 1) → digits + 1) * 10.0**exponent": "You scaled by 10 ** exponent twice: the step of the last digit "
        "already contains it.",
        "0.5 *  →  ;; digits + 1) → digits + 1) * 10.0**exponent": "You scaled by 10 ** exponent twice: the step of "
        "the last digit already contains it. And the error is half of that step.",
        "digits + 1 → digits": "One digit comes before the decimal point, so only digits − 1 come after it. Your error "
        "is ten times too small.",
        "exponent - digits + 1) → digits - 1 - exponent)": "Your exponent has the wrong sign: the step of the last "
        "digit is 10 ** (exponent − digits + 1).",
    },
)


@decimal_error.variant
def with_decimals(digits: int, exponent: int) -> Decimal:
    return Decimal(10) ** (exponent + 1 - digits) / 2


@decimal_error.variant
def step_by_step(digits: int, exponent: int) -> float:
    step = 1.0
    for _ in range(abs(exponent)):
        step = step * 10 if exponent > 0 else step / 10
    for _ in range(digits - 1):
        step /= 10
    return step / 2


@decimal_error.variant
def with_fractions(digits: int, exponent: int) -> Fraction:
    return Fraction(10) ** (exponent - digits) * 5
