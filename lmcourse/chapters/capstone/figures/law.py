"""The law of the loss, L = E + A / Nᵃ + B / Dᵇ (Hoffmann et al., 2022), and forecasts without a law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from lmcourse.chapters.capstone.measured import ENTROPY, SmallRun, small_runs

EXPONENTS = [round(0.05 * k, 2) for k in range(4, 29)]
"""The exponents that the fit chooses from: 0.2 to 1.4."""

SMALL = (2e10, 6e10)
"""The budgets of the small runs, in FLOPs."""


@dataclass(frozen=True)
class Law:
    """The fitted constants of the formula; `floor` is in nats per byte."""

    floor: float
    A: float
    B: float
    a: float
    b: float

    def loss(self, parameters: float, text: float) -> float:
        """Predict the loss of a model with this many parameters after this many bytes."""
        return self.floor + self.A * math.pow(parameters, -self.a) + self.B * math.pow(text, -self.b)


@cache
def fitted_law(floor: float = ENTROPY, seed: int | None = None, depths: tuple[int, ...] = (1, 2, 4)) -> Law:
    """The law with the smallest squared relative errors on the small runs.

    Args:
        floor: the constant E of the formula.
        seed: use the runs of this seed; None uses the means of all seeds.
        depths: use the runs with these numbers of blocks.
    """
    runs = [run for run in small_runs(seed) if run.layers in depths]
    size, text, loss = np.array([(run.parameters, run.text, run.loss) for run in runs]).T
    best, least = Law(floor, 0.0, 0.0, 0.0, 0.0), np.inf
    for a, b in product(EXPONENTS, repeat=2):
        columns = np.stack([size**-a / loss, text**-b / loss], axis=1)
        scale = np.linalg.norm(columns, axis=0)
        factors = np.linalg.lstsq(columns / scale, 1 - floor / loss, rcond=None)[0] / scale
        error = float(np.square(columns @ factors - 1 + floor / loss).sum())
        if (factors >= 0).all() and error < least:
            best, least = Law(floor, float(factors[0]), float(factors[1]), a, b), error
    return best


def trend(flops: float, seed: int | None = None) -> float:
    """Continue the best losses of the two small budgets as a power law of the excess: one forecast for all designs."""
    return ENTROPY + _best(SMALL[1], seed) * math.pow(flops / SMALL[1], _slope(seed))


def nearest_times_trend(layers: int, parameters: float, flops: float, seed: int | None = None) -> float:
    """Forecast a loss: continue the excess of the small run that is most like the design with the trend's slope."""

    def distance(run: SmallRun) -> tuple[bool, float]:
        return run.layers != layers, abs(math.log(run.parameters / parameters))

    nearest = min((run for run in small_runs(seed) if run.flops == SMALL[1]), key=distance)
    return ENTROPY + (nearest.loss - ENTROPY) * math.pow(flops / SMALL[1], _slope(seed))


def _best(flops: float, seed: int | None) -> float:
    return min(run.loss for run in small_runs(seed) if run.flops == flops) - ENTROPY


def _slope(seed: int | None) -> float:
    return math.log(_best(SMALL[1], seed) / _best(SMALL[0], seed)) / math.log(SMALL[1] / SMALL[0])
