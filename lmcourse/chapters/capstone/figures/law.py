"""The law of the loss, fitted on measured runs: L = E + A / Nᵃ + B / Dᵇ (Hoffmann et al., 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from lmcourse.chapters.capstone.measured import ENTROPY, measured_runs
from lmcourse.chapters.capstone.recipe import BATCH, LENGTH, Design

EXPONENTS = tuple(round(0.05 * k, 2) for k in range(4, 29))
"""From 0.2 to 1.4: those that the fit chooses from."""

SMALL = (2e10, 6e10)
"""The budgets of the runs that a law is fitted on: at most a tenth of the order."""


@dataclass(frozen=True)
class Law:
    """The fitted constants; `floor` in nats a byte, and the rest as in the formula."""

    floor: float
    A: float
    B: float
    a: float
    b: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Predict the loss of a model with this many parameters after this many tokens."""
        return self.floor + self.A * math.pow(parameters, -self.a) + self.B * math.pow(tokens, -self.b)

    def forecast(self, design: Design, flops: float) -> float:
        """Predict the loss of a design that spends this budget."""
        return self.loss(design.parameters, design.steps(flops) * BATCH * LENGTH)


def small_runs(seed: int = 0) -> list[tuple[int, int, float]]:
    """Parameters, bytes read and loss of the ten small runs of a seed."""
    runs = [run for budget in SMALL for run in measured_runs(budget, seed)]
    return [
        (design.parameters, design.steps(flops) * BATCH * LENGTH, loss)
        for layers, width, flops, _, loss in runs
        for design in [Design(layers, width)]
    ]


@cache
def fitted_law(floor: float = ENTROPY, seed: int = 0) -> Law:
    """The law with the smallest squared relative errors on the small runs of a seed."""
    size, text, loss = np.array(small_runs(seed)).T
    best, least = Law(floor, 0.0, 0.0, 0.0, 0.0), np.inf
    for a, b in product(EXPONENTS, repeat=2):
        columns = np.stack([size**-a / loss, text**-b / loss], axis=1)
        scale = np.linalg.norm(columns, axis=0)
        factors = np.linalg.lstsq(columns / scale, 1 - floor / loss, rcond=None)[0] / scale
        error = float(np.square(columns @ factors - 1 + floor / loss).sum())
        if (factors >= 0).all() and error < least:
            best, least = Law(floor, float(factors[0]), float(factors[1]), a, b), error
    return best
