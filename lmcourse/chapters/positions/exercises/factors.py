"""The exercise that derives RoPE: the complex factor of a position, judged by its properties."""

from __future__ import annotations

import cmath
import math
from random import Random

import torch

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def _ask(name: str, asked: str, *numbers: float) -> Case:
    """A case that asks for a property of the answer, with these numbers."""
    inputs = ", ".join(["position_factor", *map(str, numbers)])
    return script(name, f"from lmcourse.chapters.positions.properties import {asked}\n{asked}({inputs})")


def _factor(m: int, speed: float) -> complex:
    return cmath.rect(1.0, m * speed)


def _factor_cases(random: Random) -> list[Case]:
    speed, slow = round(random.uniform(0.1, 0.9), 3), round(random.uniform(0.001, 0.05), 6)
    m, n = random.randint(10, 90), random.randint(200, 5000)
    powers = [2**exponent - 1 for exponent in range(5, 17)]
    return [
        _ask("the product at other places", "products", 0.7, 2, 0, 1, 2, 3, 50, 4999, 49_999, *powers),
        _ask("the product at other places", "products", speed, 5, m, n),
        _ask("the product at other places", "products", slow, -3, m, n),
        _ask("other lengths", "lengths", 0.7, 2, 31, 4096),
        _ask("other lengths", "lengths", slow, m, n),
        _ask("position 0 at other speeds", "at_zero", speed),
        _ask("position 0 at other speeds", "at_zero", slow),
        _ask("other pairs of speeds", "two_speeds", speed, slow),
        _ask("other pairs of speeds", "two_speeds", 0.7, 0.35),
        _ask("other pairs of speeds", "two_speeds", 3.0, 1.5),
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
        _ask("the product, far into the text", "products", 0.25, 2, 3, 127, 999, 1023, 9999, 99_998),
        _ask("two speeds", "two_speeds", 1, 2),
    ],
    hidden_cases=_factor_cases,
    hints=[
        "For m = n the product is |c(m)|². It is the same for every m, and 1 for m = 0. Write c* for the conjugate: "
        "the step from 0 gives c(0)* c(1) = c(1), and c(n)* c(n + 1) must equal it for every n. What is c(n)* if "
        "|c(n)| = 1?",
        "It is 1/c(n). So c(n + 1)/c(n) is the same number for every n, and its length is 1: each step multiplies by "
        "it. Which numbers have length 1?",
        "Those on the unit circle: cos θ + i sin θ = e^{iθ}. cmath.exp(1j * θ) is one step; take the "
        "speed for θ. What is the angle after m steps?",
    ],
)

position_factor.equivalent_mutant(
    "return cmath.exp(1j * m * speed) → return cmath.exp(1j * m / speed)",
    "Any function of the speed will do if two speeds give two angles.",
)


@position_factor.variant
def cosine_and_sine(m: int, speed: float) -> complex:
    return complex(math.cos(m * speed), math.sin(m * speed))


@position_factor.variant
def by_torch_in_doubles(m: int, speed: float) -> torch.Tensor:
    angle = torch.tensor(m * speed, dtype=torch.float64)
    return torch.polar(torch.ones_like(angle), angle)


@position_factor.variant
def one_exponential(m: int, speed: float) -> complex:
    return cmath.exp(1j * m * speed)


position_factor.slips(
    one_exponential,
    {
        "1j * m * speed → 0": "Your factor is the same at every position, so the product cannot know the distance.",
        " * m → ": "Your step has one angle for all positions: the position must multiply the angle, so that every "
        "step adds to it.",
        " * speed → ": "Your factor does not use `speed`: two speeds must give two functions.",
        "1j * m → m": "Your exponent is real: the factor grows with the position. A step of length 1 has an imaginary "
        "exponent.",
        "1j * m → -m": "Your exponent is real and negative: the factor shrinks with the position. A step of length 1 "
        "has an imaginary exponent.",
        "cmath.exp(1j * m * speed) → (1 + 1j * speed) ** m": "Every step multiplies by 1 + i·speed, which is longer "
        "than 1. Divide it by its length, or take e^{i·speed}.",
        "cmath.exp(1j * m * speed) → 1 + 1j * m * speed": "You add something for each position, so a far vector is "
        "longer than a near one. Multiply for each position instead.",
        "cmath.exp(1j * m * speed) → 1 + m * speed": "Your factor is a real number that grows with the position, and "
        "so does the length of a vector. Keep it at 1.",
        "cmath.exp(1j * m * speed) → 1j * m * speed": "You return the phase, a position on a line. The factor is the "
        "number with that phase: cmath.exp(1j * phase).",
        "1j * m → 2j * math.pi * m || 1j * m → 1j * math.pi * m": "You multiply the angle by π or 2π, as if the speed "
        "were in turns: at speed 2 or 1 nothing moves. It is in radians.",
        "* m * → * (m % 1000) *": "Your angle starts again at every thousandth position, so two tokens on both sides "
        "of it have another product. Let it grow.",
        "* m * → * math.sqrt(m) *": "Your angle grows with the root of the position, so later steps are shorter. All "
        "steps turn by the same angle.",
        "* m * → * (m + 1) *": "Your factor at position 0 is not 1. Nothing has turned there yet: the angle must be 0 "
        "for m = 0.",
        "* m * → * m**2 *": "Your angle grows with the square of the position, so a step is longer far into the text. "
        "All steps are equal.",
        "cmath.exp(1j * m * speed) → speed**m": "Your step is the speed itself, a real number: its powers shrink or "
        "grow. A step has the length 1.",
        "cmath.exp(1j * m * speed) → speed * cmath.exp(1j * m)": "You multiply by the speed, so the factor has the "
        "length `speed`, even at position 0. The speed belongs into the angle.",
        "cmath.exp(1j * m * speed) → (1 + 1j * m * speed) / abs(1 + 1j * m * speed)": "You take the direction of 1 + "
        "i·m·speed. Its angle never exceeds 90°, so later steps are shorter. All steps turn by the same angle.",
    },
)


position_factor.slips(
    cosine_and_sine,
    {
        ", math.sin(m * speed) → ": "Your factor is a real wave. It changes the length of a vector, and with it the "
        "product at every place.",
        "math.sin(m * speed) → math.sin(speed)": "Your real part is right. The imaginary part must use the position, "
        "too: sin(m · speed).",
        "math.cos → math.sin ;; math.sin → math.cos": "You swapped cosine and sine. At position 0 the angle is 0 and "
        "the factor must be 1: the cosine is its real part.",
        "complex(math.cos(m * speed), math.sin(m * speed)) → torch.exp(1j * torch.tensor(m * speed)).item()": "Your "
        "numbers are in fp32, which stores an angle of 25,000 radians only to a thousandth. Python's complex numbers "
        "are fp64.",
        "complex( → ( ;; , math.sin → + math.sin": "You add cosine and sine. They are the two parts of one number: cos "
        "+ i sin.",
    },
)
