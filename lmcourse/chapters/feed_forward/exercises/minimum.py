"""The exercise on the minimum of GELU and SiLU, which is below zero."""

from __future__ import annotations

import math
from random import Random
from statistics import NormalDist

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _minimum(kind: str, scale: float = 1.0) -> list[float]:
    """Bisect the slope, gate(x) + x · density(x), for scale 1: f_scale(x) = f_1(scale · x) / scale."""
    normal = NormalDist()
    gate = normal.cdf if kind == "gelu" else lambda x: 1 / (1 + math.exp(-x))
    density = normal.pdf if kind == "gelu" else lambda x: gate(x) * gate(-x)
    low, high = -2.0, 0.0
    for _ in range(100):
        x = (low + high) / 2
        low, high = (x, high) if gate(x) + x * density(x) < 0 else (low, x)
    return [low / scale, low * gate(low) / scale]


def _minimum_cases(random: Random) -> list[Case]:
    kinds = ("silu", "gelu")
    return [
        *(case("gates that open slowly", kind, scale=0.1) for kind in kinds),
        *(case("gates that open fast", kind, scale=10.0) for kind in kinds),
        *(case("gates that open slowly", kind, scale=round(random.uniform(0.2, 0.8), 3)) for kind in kinds),
        *(case("gates that open fast", kind, scale=round(random.uniform(1.5, 6.0), 3)) for kind in kinds),
    ]


activation_minimum = Exercise(
    "activation_minimum",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_minimum,
    tolerance=Tolerance(5e-4),  # four correct digits: -1.278 for -1.27846
    cases=[
        case("SiLU", "silu"),
        case("GELU", "gelu"),
        case("x·σ(1.702x), which stands in for GELU", "silu", scale=1.702),
        case("a GELU that opens half as fast", "gelu", scale=0.5),
        case("a SiLU that opens a tenth as fast: a dip far to the left", "silu", scale=0.1),
    ],
    hidden_cases=_minimum_cases,
    hints=[
        "The simple way: evaluate the function on a fine grid of negative x (torch.linspace in float64), and take "
        "argmin.",
        "How far to the left must the grid reach when the scale is 0.2? Let it reach to −5 / scale.",
        "With bisection: the slope is negative left of the minimum and positive right of it. Halve 50 times.",
    ],
    seconds=20.0,
)


@activation_minimum.variant
def on_a_fine_grid(kind: str, scale: float = 1.0) -> list[float]:
    z = torch.linspace(-5, 0, 200_001, dtype=torch.float64)
    y = z * (z.sigmoid() if kind == "silu" else torch.special.ndtr(z))
    at = y.argmin()
    return [z[at].item() / scale, y[at].item() / scale]


activation_minimum.slips(
    on_a_fine_grid,
    {
        "[z[at].item() / scale, y[at].item() / scale] → [y[at].item() / scale, z[at].item() / scale]": "You return the "
        "value first. Return [x, f(x)].",
        "z[at].item() / scale → z[at].item() ;; y[at].item() / scale → y[at].item()": "You always return the minimum "
        "for scale 1.",
        "y[at].item() / scale → y[at].item()": "x is right, but the value belongs to scale 1. A gate that opens faster "
        "makes a shallower dip.",
        "z[at].item() / scale → z[at].item()": "x belongs to scale 1, though the value is right. A gate that opens "
        "faster has its dip nearer to zero.",
        "y[at].item() → (z[at].item() + 1)": "Your value is x + 1, over the scale. That is the minimum of SiLU only: "
        "for GELU, evaluate x·Φ(x).",
        'z.sigmoid() if kind == "silu" else torch.special.ndtr(z) → z.sigmoid()': "You found the minimum of SiLU for "
        "both kinds. GELU dips less, and nearer to zero.",
        "-5, 0, 200_001 → -30 * scale, 0, 301": "Your grid is too coarse: a step of 0.1 cannot give four digits of x.",
        "-5, 0, 200_001 → -5, 0, 501": "Your grid is too coarse: a step of 0.01 gives two or three digits of x, not "
        "four.",
        "[z[at].item() / scale, y[at].item() / scale] → [z[at].item() / scale, (z[at].item() / scale + 1) if "
        'kind == "silu" else y[at].item() / scale]': "Your value for SiLU is x + 1. That holds for scale 1: for "
        "another scale it is x + 1/scale.",
        "y.argmin() → y.diff().argmin()": "That is where the slope is lowest, which is further left. At the minimum of "
        "the function the slope is zero.",
        "-5, 0 → -5 * scale, 0 || -5, 0 → -2 * scale, 0 || -5, 0 → -10 * scale, 0": "You search from the same place on "
        "for every scale. A slow gate has its dip further out: search down to −5 / scale, say.",
        "z * (z.sigmoid() → (z * z.sigmoid() ;; torch.special.ndtr(z) → torch.nn.functional.gelu(z, "
        'approximate="tanh")': "That is the minimum of GELU's tanh approximation. The exact GELU, x·Φ(x), has its own, "
        "a little to the right.",
        'kind == "silu" → kind == "gelu"': "The kinds are swapped: you return GELU's minimum for SiLU, and SiLU's for "
        "GELU.",
        'z.sigmoid() if kind == "silu" else → ': "You found the minimum of GELU for both kinds. SiLU dips deeper, and "
        "further left.",
        "z[at].item() / scale → z[at].item() * scale ;; y[at].item() / scale → y[at].item() * scale": "You multiply by "
        "the scale. A gate that opens faster makes a smaller dip: divide.",
    },
)


activation_minimum.equivalent_mutant(
    "z = torch.linspace(-3, 0, 300001, dtype=torch.float64) → z = torch.linspace(-3, 0, 300001)",
    "In float32 the lowest values are alike over 0.0005 around the minimum, which is four digits, as asked for.",
)
GRID = "z = torch.linspace(-3, 0, 300001, dtype=torch.float64)"
for same_minimum in (
    "0, -3, 300001",
    "-4, 0, 300001",
    "-2, 0, 300001",
    "-3, 1, 300001",
    "-3, 0, 300002",
    "-3, 0, 300000",
):
    activation_minimum.equivalent_mutant(
        f"{GRID} → z = torch.linspace({same_minimum}, dtype=torch.float64)",
        "This grid has both minima inside, too, and is as fine: how to search is left open.",
    )
