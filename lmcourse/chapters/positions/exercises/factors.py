"""The exercise that derives RoPE: the complex factor of a position, judged by its properties."""

from __future__ import annotations

import cmath
import math
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

_IMPORT = "from lmcourse.chapters.positions.properties import"


def _ask(name: str, asked: str, *numbers: float) -> Case:
    """A case that asks for a property of the answer, with these numbers."""
    inputs = ", ".join(["position_factor", *map(str, numbers)])
    return script(name, f"{_IMPORT} {asked}\n{asked}({inputs})")


def _factor(m: int, speed: float) -> complex:
    return cmath.rect(1.0, m * speed)


def _factor_cases(random: Random) -> list[Case]:
    speed, slow = round(random.uniform(0.1, 0.9), 3), round(random.uniform(0.001, 0.05), 6)
    m, n = random.randint(10, 90), random.randint(200, 5000)
    return [
        _ask("the product at other places", "products", 0.7, 1, 0, 1, 2, 3, 50),
        _ask("the product at other places", "products", speed, 5, m, n),
        _ask("the product at other places", "products", slow, -3, m, n),
        _ask("other lengths", "lengths", 0.7, 2, 31, 4096),
        _ask("other lengths", "lengths", slow, m, n),
        _ask("position 0 at other speeds", "at_zero", speed),
        _ask("position 0 at other speeds", "at_zero", slow),
        _ask("other pairs of speeds", "two_speeds", speed, slow),
        _ask("other pairs of speeds", "two_speeds", 0.7, 0.35),
    ]


position_factor = Exercise(
    "position_factor",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_factor,
    cases=[
        _ask("nothing moves at position 0", "at_zero", 0.5),
        _ask("every length stays", "lengths", 0.5, 1, 7, 1000),
        _ask("the product, distance 2", "products", 0.5, 2, 3, 103),
        _ask("the product, far into the text", "products", 0.25, 2, 3, 100_003),
        _ask("two speeds", "two_speeds", 0.5, 0.25),
    ],
    hidden_cases=_factor_cases,
    hints=[
        "For m = n the product is |c(m)|². It is the same for every m, and 1 for m = 0. Write c* for the conjugate: "
        "the step from 0 gives c(0)* c(1) = c(1), and c(n)* c(n + 1) must equal it for every n. What is c(n)* if "
        "|c(n)| = 1?",
        "It is 1/c(n). So c(n + 1)/c(n) is the same number for every n, and its length is 1: each step multiplies by "
        "it. Which numbers have length 1?",
        "Those on the unit circle: cos θ + i sin θ = e^{iθ}. With θ = speed, m steps make cmath.exp(1j * m * speed).",
    ],
)

position_factor.equivalent_mutant(
    "return cmath.exp(1j * m * speed) → return cmath.exp(1j * m / speed)",
    "Any function of the speed will do if two speeds give two angles.",
)


@position_factor.misconception(
    "Your factor is a real wave. It changes the length of a vector, and with it the product at every place."
)
def a_cosine(m: int, speed: float) -> complex:
    return math.cos(m * speed)


@position_factor.misconception("Your factor is the same at every position, so the product cannot know the distance.")
def no_position(m: int, speed: float) -> complex:
    return 1.0


@position_factor.misconception(
    "Your step has one angle for all positions: the position must multiply the angle, so that every step adds to it."
)
def one_angle(m: int, speed: float) -> complex:
    return cmath.exp(1j * speed)


@position_factor.misconception("Your factor does not use `speed`: two speeds must give two functions.")
def no_speed(m: int, speed: float) -> complex:
    return cmath.exp(1j * m)


@position_factor.misconception(
    "Your exponent is real: the factor grows with the position. A step of length 1 has an imaginary exponent."
)
def growing(m: int, speed: float) -> complex:
    return math.exp(m * speed)


@position_factor.misconception(
    "Your exponent is real and negative: the factor shrinks with the position. A step of length 1 has an imaginary "
    "exponent."
)
def shrinking(m: int, speed: float) -> complex:
    return math.exp(-m * speed)


@position_factor.misconception(
    "Every step multiplies by 1 + i·speed, which is longer than 1. Divide it by its length, or take e^{i·speed}."
)
def long_steps(m: int, speed: float) -> complex:
    return (1 + 1j * speed) ** m


@position_factor.misconception(
    "You add something for each position, so a far vector is longer than a near one. Multiply for each position "
    "instead."
)
def added(m: int, speed: float) -> complex:
    return 1 + 1j * m * speed


@position_factor.misconception(
    "Your factor is a real number that grows with the position, and so does the length of a vector. Keep it at 1."
)
def added_to_the_real_part(m: int, speed: float) -> complex:
    return 1 + m * speed


@position_factor.misconception(
    "Your real part is right. The imaginary part must use the position, too: sin(m · speed)."
)
def sine_of_one_step(m: int, speed: float) -> complex:
    return math.cos(m * speed) + 1j * math.sin(speed)


@position_factor.misconception(
    "You return the phase, a position on a line. The factor is the number with that phase: cmath.exp(1j * phase)."
)
def the_phase(m: int, speed: float) -> complex:
    return 1j * m * speed


@position_factor.misconception(
    "Your factor at position 0 is not 1. Nothing has turned there yet: the angle must be 0 for m = 0."
)
def a_step_too_many(m: int, speed: float) -> complex:
    return cmath.exp(1j * (m + 1) * speed)


@position_factor.misconception(
    "You swapped cosine and sine. At position 0 the angle is 0 and the factor must be 1: the cosine is its real part."
)
def sine_first(m: int, speed: float) -> complex:
    return complex(math.sin(m * speed), math.cos(m * speed))


@position_factor.misconception(
    "Your angle grows with the square of the position, so a step is longer far into the text. All steps are equal."
)
def square(m: int, speed: float) -> complex:
    return cmath.exp(1j * m**2 * speed)


@position_factor.misconception(
    "Your step is the speed itself, a real number: its powers shrink or grow. A step has the length 1."
)
def powers_of_the_speed(m: int, speed: float) -> complex:
    return speed**m


@position_factor.misconception(
    "Your numbers are in fp32, which stores an angle of 25,000 radians only to a thousandth. Python's complex numbers "
    "are fp64."
)
def single_precision(m: int, speed: float) -> complex:
    angle = torch.tensor(m, dtype=torch.float32) * speed
    return torch.complex(angle.cos(), angle.sin()).item()


@position_factor.misconception(
    "You multiply by the speed, so the factor has the length `speed`, even at position 0. The speed belongs into the "
    "angle."
)
def speed_as_the_length(m: int, speed: float) -> complex:
    return speed * cmath.exp(1j * m)


@position_factor.misconception(
    "You take the direction of 1 + i·m·speed. Its angle never exceeds 90°, so later steps are shorter. All steps turn "
    "by the same angle."
)
def direction_of_a_sum(m: int, speed: float) -> complex:
    return complex(1, m * speed) / abs(complex(1, m * speed))


@position_factor.misconception("You add cosine and sine. They are the two parts of one number: cos + i sin.")
def a_sum(m: int, speed: float) -> complex:
    return math.cos(m * speed) + math.sin(m * speed)


@position_factor.variant
def the_other_way_round(m: int, speed: float) -> complex:
    return cmath.exp(-1j * m * speed)


@position_factor.variant
def cosine_and_sine(m: int, speed: float) -> complex:
    return complex(math.cos(m * speed), math.sin(m * speed))


@position_factor.variant
def a_step_many_times(m: int, speed: float) -> complex:
    step = math.cos(speed) + 1j * math.sin(speed)
    return step**m


@position_factor.variant
def one_step_after_another(m: int, speed: float) -> complex:
    result = 1 + 0j
    for _ in range(m):
        result *= cmath.rect(1, speed)
    return result


@position_factor.variant
def a_slope_made_short(m: int, speed: float) -> complex:
    step = (1 + 1j * speed) / abs(1 + 1j * speed)
    return step**m


@position_factor.variant
def by_numpy(m: int, speed: float) -> complex:
    factor: np.complex128 = np.exp(1j * m * speed)
    return factor


@position_factor.variant
def by_torch_in_doubles(m: int, speed: float) -> torch.Tensor:
    angle = torch.tensor(m * speed, dtype=torch.float64)
    return torch.polar(torch.ones_like(angle), angle)
