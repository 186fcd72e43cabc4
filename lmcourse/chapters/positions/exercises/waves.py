"""Exercises on sinusoidal positions: the table and its wavelengths."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

# sinusoidal ------------------------------------------------------------------------------------------------------


def _pairs(angle: Tensor, sine_first: bool = True) -> Tensor:
    """Sine and cosine of each angle next to each other: imaginary and real part of a turned 1."""
    parts = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))
    return (parts.flip(-1) if sine_first else parts).flatten(-2).float()


def _sinusoidal(positions: Tensor, d: int) -> Tensor:
    return _pairs(angles(positions, d))


def _sinusoidal_cases(random: Random) -> list[Case]:
    near = torch.tensor([random.randint(0, 40) for _ in range(5)])
    far = torch.tensor([random.randint(500, 1000) for _ in range(3)])
    return [
        case("other positions", near, 6),
        case("far positions", far, 16),
        case("other widths", near, 2),
        case("other widths", near[:1], 2 * random.randint(20, 40)),
        case("bad input", near, 2 * random.randint(1, 9) + 1),
    ]


sinusoidal = Exercise(
    "sinusoidal",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_sinusoidal,
    # An fp32 angle of 1000 radians is known to 3e-5, and fp32 frequencies add a few times that.
    tolerance=Tolerance(0.0, 5e-4),
    cases=[
        case("the first position, d = 4", torch.tensor([0]), 4),
        case("positions 0, 1 and 2, d = 4", torch.arange(3), 4),
        case("position 9, d = 8", torch.tensor([9]), 8),
        case("an odd width", torch.arange(3), 5),
    ],
    hidden_cases=_sinusoidal_cases,
    hints=[
        "A table of angles first, positions down and pairs across: angle = position · ω with ω = 10000^(−2i/d).",
        "torch.arange(0, d, 2) / d is 2i/d for all pairs at once; positions[:, None] * omega is the table.",
        "torch.stack([angles.sin(), angles.cos()], dim=-1) has the shape (s, d/2, 2), and .flatten(-2) puts each "
        "sine beside its cosine.",
    ],
)


def _even(d: int) -> int:
    return d + d % 2


@sinusoidal.misconception(
    "You number the features, not the pairs: feature 2i and feature 2i + 1 share one frequency, 10000^(−2i/d)."
)
def a_frequency_per_feature(positions: Tensor, d: int) -> Tensor:
    angles(positions, d)
    angle = positions.double()[:, None] * 10_000.0 ** (-torch.arange(d, dtype=torch.float64) / d)
    return torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos()).float()


@sinusoidal.misconception(
    "All your sines come first and all cosines after them. Some code does that; here each cosine follows its sine."
)
def halves(positions: Tensor, d: int) -> Tensor:
    return torch.cat([angles(positions, d).sin(), angles(positions, d).cos()], dim=-1).float()


@sinusoidal.misconception("Your cosines come first. The sine is in the even feature 2i, the cosine in 2i + 1.")
def cosine_first(positions: Tensor, d: int) -> Tensor:
    return _pairs(angles(positions, d), sine_first=False)


@sinusoidal.misconception("Your exponent is i/d. The formula has 2i/d, so that the slowest pair nears 1/10000.")
def half_the_exponent(positions: Tensor, d: int) -> Tensor:
    return _pairs(angles(positions, d, base=100.0))


@sinusoidal.misconception("You count positions from 1. The first token is at position 0: sine 0, cosine 1.")
def from_one(positions: Tensor, d: int) -> Tensor:
    return _sinusoidal(positions + 1, d)


@sinusoidal.misconception("You multiply by 10000^(2i/d). Later pairs must turn more slowly: divide by it.")
def faster_and_faster(positions: Tensor, d: int) -> Tensor:
    return _pairs(angles(positions, d, base=1e-4))


@sinusoidal.misconception("With an odd width the last sine has no cosine: raise ValueError.")
def odd_widths_accepted(positions: Tensor, d: int) -> Tensor:
    return _sinusoidal(positions, _even(d))[:, :d]


# wavelength ------------------------------------------------------------------------------------------------------


def _wavelength(pair: int, d: int, base: float = 10_000.0) -> float:
    return math.tau * math.exp(math.log(base) * 2 * pair / d)


def _wavelength_cases(random: Random) -> list[Case]:
    widths = [2 * random.randint(8, 600) for _ in range(3)]
    cases = [case("other widths and pairs", random.randrange(1, d // 2), d) for d in widths]
    return [*cases, case("other bases", random.randint(3, 60), 128, base=float(random.randint(20, 900) * 1000))]


wavelength = Exercise(
    "wavelength",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_wavelength,
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
