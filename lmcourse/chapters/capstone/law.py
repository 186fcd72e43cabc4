"""The law of the loss, L = E + A / Nᵃ + B / Dᵇ (Hoffmann et al., 2022), and forecasts without a law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lmcourse.chapters.capstone.measured import ENTROPY, SmallRun, small_runs

EXPONENTS = [round(0.05 * k, 2) for k in range(4, 29)]
"""The exponents that the fit chooses from: 0.2 to 1.4."""

SMALL = (2e10, 6e10)
"""The budgets of the small runs, in FLOPs."""

Law = Mapping[str, float]
Fit = Callable[[list[tuple[float, float, float]], float, list[float]], Law]
Skill = Callable[[dict[str, float], dict[str, float], dict[str, float]], float]


def fit(runs: Sequence[tuple[float, float, float]], floor: float, exponents: Sequence[float]) -> dict[str, float]:
    """Return the A, B ≥ 0, a and b with the smallest squared relative errors; each subset of the terms is tried."""
    size, text, loss = np.array(runs, dtype=np.float64).T
    target = (loss - floor) / loss
    fits = []
    for a, b in itertools.product(exponents, repeat=2):
        scale = np.array([np.min(size) ** a, np.min(text) ** b])
        columns = np.stack([(np.min(size) / size) ** a, (np.min(text) / text) ** b], axis=1) / loss[:, None]
        for used in ([0], [1], [0, 1]):
            factors = np.zeros(2)
            factors[used] = np.linalg.lstsq(columns[:, used], target, rcond=None)[0]
            if (factors >= 0).all():
                error = float(np.square(columns @ factors - target).sum())
                fits.append((error, *(factors * scale).tolist(), a, b))
    return dict(zip("ABab", min(fits)[1:], strict=True))


def by_law(law: Law, parameters: float, text: float, floor: float = ENTROPY) -> float:
    """Return the loss that a fitted law forecasts for this many parameters and bytes of text."""
    return floor + law["A"] * math.pow(parameters, -law["a"]) + law["B"] * math.pow(text, -law["b"])


def trend(flops: float) -> float:
    """Continue the best losses of the two small budgets as a power law of the excess: one forecast for all designs."""
    return ENTROPY + _best(SMALL[1]) * math.pow(flops / SMALL[1], _slope())


def nearest_times_trend(layers: int, parameters: float, flops: float) -> float:
    """Forecast a loss: continue the excess of the small run that is most like the design with the trend's slope."""

    def distance(run: SmallRun) -> tuple[bool, float]:
        return run.layers != layers, abs(math.log(run.parameters / parameters))

    nearest = min((run for run in small_runs() if run.flops == SMALL[1]), key=distance)
    return ENTROPY + (nearest.loss - ENTROPY) * math.pow(flops / SMALL[1], _slope())


def _best(flops: float) -> float:
    return min(run.loss for run in small_runs() if run.flops == flops) - ENTROPY


def _slope() -> float:
    return math.log(_best(SMALL[1]) / _best(SMALL[0])) / math.log(SMALL[1] / SMALL[0])


def nearest_loss(runs: Sequence[SmallRun], parameters: float, text: float) -> float:
    """Return the loss of the run whose N and D are nearest on a logarithmic scale."""
    return min(runs, key=lambda run: math.hypot(math.log(run.parameters / parameters), math.log(run.text / text))).loss


_chosen: list[tuple[int, int, float]] = []


def hold_out(chosen: Sequence[tuple[int, int, float]], fit_law: Fit, skill: Skill) -> str:
    """Fit the law to the other small runs, and return its forecasts of the chosen ones; later choices are refused."""
    _chosen[:] = _chosen or [*chosen]
    if _chosen != [*chosen]:
        return f"You have seen the result of {_chosen}: another choice now would be a choice by its result."
    every = small_runs()
    left_out = [run for run in every if run[:3] in _chosen]
    if len(left_out) != 2:
        _chosen.clear()
        return "Choose two different runs of the table, each as (blocks, width, FLOPs)."
    known = [run for run in every if run not in left_out]
    law = fit_law([(run.parameters, run.text, run.loss) for run in known], ENTROPY, EXPONENTS)
    lines, losses = [], []
    for run in left_out:
        losses.append((by_law(law, *run[3:5]), run.loss, nearest_loss(known, *run[3:5])))
        name = f"{run.layers} × {run.d_model} with {run.flops:.0e} FLOPs"
        lines.append(f"{name}: law {losses[-1][0]:.3f}, measured {run.loss:.3f}, nearest run {losses[-1][2]:.3f}")
    parts = [dict(zip("ab", each, strict=True)) for each in zip(*losses, strict=True)]
    lines.append(f"skill against the nearest run: {skill(*parts):+.2f}")
    return "\n".join([*lines, "Two runs show little: of all 120 choices, 63 have a skill above 0."])


def by_chance(differences: Sequence[float]) -> float:
    """Return the fraction of patterns of signs whose sum is at least as far from 0: the p-value of a paired test."""
    patterns = itertools.product((1, -1), repeat=len(differences))
    sums = [abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(each >= abs(sum(differences)) - 1e-12 for each in sums) / len(sums)
