"""The exercise on how long the wave of a pair is."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _wavelength(pair: int, d: int, base: float = 10_000.0) -> float:
    return math.tau * math.exp(math.log(base) * 2 * pair / d)


def _wavelength_cases(random: Random) -> list[Case]:
    fixed = [
        case("other widths and pairs", 1, 4),
        case("other widths and pairs", 7, 16),
        case("other bases", 0, 2, base=100.0),
        case("other bases", 31, 64, base=500.0),
    ]
    widths = [2 * random.randint(8, 600) for _ in range(3)]
    cases = [case("other widths and pairs", random.randrange(1, d // 2), d) for d in widths]
    return [*fixed, *cases, case("other bases", random.randint(3, 60), 128, base=float(random.randint(20, 900) * 1000))]


wavelength = Exercise(
    "wavelength",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_wavelength,
    # A power in fp32 is known to a millionth.
    tolerance=Tolerance(1.5e-6),
    cases=[
        case("the fastest pair", 0, 1024),
        case("pair 2 of d = 1024", 2, 1024),
        case("pair 500 of d = 1024", 500, 1024),
        case("the slowest pair of a head with base 500,000", 63, 128, base=500_000.0),
    ],
    hidden_cases=_wavelength_cases,
    hints=[
        "The wave repeats when its angle position · ω has grown by one full turn.",
        "One full turn is 2π, so T = 2π / ω, and 1/ω = base^(2i/d). Use math.pi, not 3.14.",
    ],
)


@wavelength.misconception("That is ω, the angle per token. The wavelength is how many tokens make 2π: 2π/ω.")
def the_frequency(pair: int, d: int, base: float = 10_000.0) -> float:
    return math.tau / _wavelength(pair, d, base)


@wavelength.misconception("That is 1/ω, the tokens in one radian. A full turn is 2π radians.")
def a_radian(pair: int, d: int, base: float = 10_000.0) -> float:
    return _wavelength(pair, d, base) / math.tau


@wavelength.misconception("You round π to 3.14. That moves the slow wave by dozens of tokens: use math.pi.")
def rounded_pi(pair: int, d: int, base: float = 10_000.0) -> float:
    return _wavelength(pair, d, base) * 3.14 / math.pi


@wavelength.misconception("Your exponent is i/d. Pair i has the exponent 2i/d.")
def half_of_the_exponent(pair: int, d: int, base: float = 10_000.0) -> float:
    return _wavelength(pair, d, math.sqrt(base))


@wavelength.misconception("You use 10,000 whatever the base is.")
def always_ten_thousand(pair: int, d: int, base: float = 10_000.0) -> float:
    return _wavelength(pair, d)


@wavelength.variant
def by_the_frequency(pair: int, d: int, base: float = 10_000.0) -> float:
    frequency = 1 / math.pow(base, 2 * pair / d)
    return math.tau / frequency


@wavelength.variant
def pair_by_pair(pair: int, d: int, base: float = 10_000.0) -> float:
    wave = 2 * math.pi
    for _ in range(pair):
        wave *= base ** (2 / d)
    return wave


@wavelength.variant
def single_precision(pair: int, d: int, base: float = 10_000.0) -> float:
    omega = base ** (-2 * torch.tensor(float(pair)) / d)
    return (2 * torch.pi / omega).item()


@wavelength.variant
def logarithms_by_numpy(pair: int, d: int, base: float = 10_000.0) -> float:
    wave: float = np.exp(np.log(2 * np.pi) + 2 * pair * np.log(base) / d)
    return wave
