"""The exercise on the law of the loss, fitted to small runs with a known floor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Runs = list[tuple[float, float, float]]
GRID = [0.3, 0.5, 0.6, 0.8, 0.95, 1.05]
SIZES = [(10_000, 3e5), (20_000, 1e5), (10_000, 1e6), (70_000, 4e5), (33_000, 2e6), (250_000, 3e5), (70_000, 1.4e6)]


def _squares(columns: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """The best non-negative coefficients and their sum of squared errors; each subset of the columns is tried."""
    best, least = np.zeros(2), float(np.square(target).sum())
    for used in ([0], [1], [0, 1]):
        part, *_ = np.linalg.lstsq(columns[:, used], target, rcond=None)
        error = float(np.square(columns[:, used] @ part - target).sum())
        if (part >= 0).all() and error < least:
            best, least = np.zeros(2), error
            best[used] = part
    return best, least


def _fit(runs: Runs, floor: float, exponents: list[float], *, relative: bool = True) -> dict[str, float]:
    data = np.array(runs, dtype=np.float64)
    size, text, loss = data.T
    weight = loss if relative else np.ones_like(loss)
    fits = []
    for a, b in product(exponents, repeat=2):
        scale = np.array([np.min(size) ** a, np.min(text) ** b])
        columns = np.stack([(np.min(size) / size) ** a, (np.min(text) / text) ** b], axis=1) / weight[:, None]
        best, error = _squares(columns, (loss - floor) / weight)
        fits.append((error, *(best * scale).tolist(), a, b))
    _, big_a, big_b, a, b = min(fits)
    return {"A": big_a, "B": big_b, "a": a, "b": b}


def _made(
    law: tuple[float, float, float, float],
    floor: float,
    noise: float = 0.0,
    sizes: Sequence[tuple[float, float]] = SIZES,
) -> Runs:
    """Runs that obey a law, apart from a relative error of alternating sign."""
    big_a, big_b, a, b = law
    signs = (1, -1, -1, 1, 1, 1, -1)
    return [
        (float(n), float(d), (floor + big_a / n**a + big_b / d**b) * (1 + noise * sign))
        for (n, d), sign in zip(sizes, signs, strict=False)
    ]


LAW = (50.0, 60_000.0, 0.6, 1.05)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("another law", _made((20.0, 9_000.0, 0.5, 0.95), 0.1), 0.1, GRID),
        case("runs with noise", _made(LAW, 0.22, 0.01), 0.22, GRID),
        case("runs with noise", _made((30.0, 90_000.0, 0.5, 1.05), 0.3, 0.03), 0.3, GRID),
        case("runs with much noise", _made(LAW, 0.2, 0.3), 0.2, GRID),
        case("a term that vanishes", _made((-0.5, 5_000.0, 0.5, 0.5), 0.2), 0.2, [0.5]),
        case("the other term vanishes", _made((40.0, -9.0, 0.6, 0.6), 0.2, 0.005), 0.2, [0.6]),
        case("size and text in step", _made((40.0, 300.0, 0.5, 0.5), 0.2, 0.0, IN_STEP), 0.2, [0.5]),
        case("the floor is 0", _made((5.0, 300.0, 0.3, 0.5), 0.0), 0.0, GRID),
        case("a single pair of exponents", _made(LAW, 0.2, 0.01), 0.2, [0.7]),
        case("exponents in falling order", _made(LAW, 0.2), 0.2, GRID[::-1]),
        case("exponents close to each other", _made(LAW, 0.2, 0.001), 0.2, [0.59, 0.6, 1.04, 1.05]),
        case("the sizes of laboratories", _made((406.4, 41_070.0, 0.3, 0.5), 1.69, 0.0, LARGE), 1.69, GRID),
    ]
    for _ in range(2):
        law = random.uniform(20, 60), random.uniform(1e4, 9e4), random.choice(GRID[1:-1]), GRID[-1]
        floor = random.uniform(0.1, 0.3)
        cases.append(case("other laws", _made(law, floor), floor, GRID))
    return cases


IN_STEP = [(1e4, 2e5), (4e4, 8.001e5), (1e5, 2.0002e6), (3e5, 6e6), (9e5, 1.8001e7)]
LARGE = [(7e7, 3e9), (4e8, 8e9), (1e9, 1e9), (7e9, 1.4e11), (1.6e10, 2e10), (7e10, 1.4e12)]

fit_law = Exercise(
    "fit_law",
    points=4,
    minutes=15,
    difficulty=3,
    reference=_fit,
    cases=[
        case("six runs that obey a law", _made(LAW, 0.2)[:6], 0.2, GRID),
        case("runs with noise, two pairs to choose from", _made(LAW, 0.2, 0.02), 0.2, [0.6, 1.05]),
        case("more parameters do not help", _made((-1.0, 600.0, 0.6, 0.6), 0.2, 0.01), 0.2, [0.6]),
        case("more text does not help", _made((30.0, -20.0, 0.6, 0.6), 0.2, 0.01), 0.2, [0.6]),
        case("runs with noise, all pairs", _made((25.0, 70_000.0, 0.5, 1.05), 0.3, 0.03), 0.3, GRID),
        case("size and text in step", _made((30.0, 200.0, 0.5, 0.5), 0.3, 0.0, IN_STEP), 0.3, [0.5]),
        case("a larger exponent for the parameters", _made((60_000.0, 50.0, 1.05, 0.6), 0.2), 0.2, GRID),
        case("a single exponent", _made((30.0, 40_000.0, 0.8, 0.8), 0.1, 0.02), 0.1, [0.8]),
    ],
    hidden_cases=_hidden,
    hints=[
        "For given exponents the law is linear in A and B, so least squares finds both. Search only the exponents: try "
        "all pairs from the list.",
        "(floor + A/Nᵃ + B/Dᵇ)/L − 1 is A · 1/(L Nᵃ) + B · 1/(L Dᵇ) − (L − floor)/L: two columns and a target. "
        "torch.linalg.lstsq in float64.",
        "If one coefficient comes out negative, the best law without negative terms sets it to 0: fit the other column "
        "alone. Keep the pair with the smallest sum of squares.",
    ],
    forbid=["scipy", "sklearn"],
    tolerance=Tolerance(1e-4, 1e-7),
)


fit_law.equivalent_mutant(
    "error = (chosen @ factors - target).square().sum().item() → error = (target - chosen @ "
    "factors).square().sum().item()",
    "the square of a difference does not depend on its sign",
)
fit_law.equivalent_mutant(
    "if factors.min() >= 0 and error < least: → if factors.min() >= 0 and error <= least:",
    "of two laws that fit equally well either may be taken, and no case has two",
)


@fit_law.misconception("You compare absolute errors, so the large losses decide. Compare relative errors.")
def absolute(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _fit(runs, floor, exponents, relative=False)


@fit_law.misconception("Your fit has no floor, so N and D must explain what no model can learn.")
def floor_forgotten(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _fit(runs, 0.0, exponents)


@fit_law.misconception("You subtract the floor before you compare. The relative error is a fraction of the whole loss.")
def share_of_the_rest(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _fit([(n, d, loss - floor) for n, d, loss in runs], 0.0, exponents)


@fit_law.misconception("A term of yours is negative. In this law more parameters or more text cannot hurt.")
def negative(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _of_any_sign(runs, floor, exponents)


@fit_law.misconception("Two things: you compare absolute errors, where relative ones count, and a term is negative.")
def absolute_and_negative(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _of_any_sign(runs, floor, exponents, relative=False)


def _of_any_sign(runs: Runs, floor: float, exponents: list[float], *, relative: bool = True) -> dict[str, float]:
    best: tuple[float, ...] = (float("inf"),)
    size, text, loss = np.array(runs).T
    for a, b in product(exponents, repeat=2):
        weight = loss if relative else np.ones_like(loss)
        columns, target = np.stack([size**-a, text**-b], axis=1) / weight[:, None], (loss - floor) / weight
        part, *_ = np.linalg.lstsq(columns, target, rcond=None)
        error = float(np.square(columns @ part - target).sum())
        best = min(best, (error, float(part[0]), float(part[1]), a, b))
    return dict(zip("ABab", best[1:], strict=True))


@fit_law.misconception("You fit a straight line to logarithms. The law is a sum, and its logarithm is no line.")
def logs(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    size, text, loss = np.log(np.array(runs)).T
    line = np.linalg.lstsq(np.stack([np.ones_like(size), -size, -text], axis=1), loss, rcond=None)[0]
    return {"A": float(np.exp(line[0])), "B": float(np.exp(line[0])), "a": float(line[1]), "b": float(line[2])}


@fit_law.misconception("You stop at the first pair of exponents. Try all, and keep the one with the smallest error.")
def first_pair(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _fit(runs, floor, exponents[:1])


@fit_law.misconception("A and B are swapped: A and a belong to the parameters, B and b to the text.")
def swapped(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    right = _fit(runs, floor, exponents)
    return {"A": right["B"], "B": right["A"], "a": right["b"], "b": right["a"]}


@fit_law.misconception("You give both terms the same exponent. Parameters and text have separate exponents.")
def same_exponent(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    fits = [_fit(runs, floor, [exponent]) for exponent in exponents]
    size, text, loss = np.array(runs).T

    def error(law: dict[str, float]) -> float:
        forecast = floor + law["A"] * size ** -law["a"] + law["B"] * text ** -law["b"]
        return float(np.square(forecast / loss - 1).sum())

    best: dict[str, float] = min(fits, key=error)
    return best


@fit_law.misconception("You multiply by Nᵃ. The term falls when the model grows: divide by it.")
def growing(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _fit(runs, floor, [-exponent for exponent in exponents])


@fit_law.misconception("You set a negative term to 0 and keep the other as it was. Fit the other one again, alone.")
def clipped(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    law: dict[str, float] = negative(runs, floor, exponents)
    return law | {"A": max(law["A"], 0.0), "B": max(law["B"], 0.0)}


@fit_law.misconception(
    "You discard exponents with which A or B comes out negative, so no law is left. They have a best law that is "
    "allowed: one term is 0."
)
def negative_pairs_discarded(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float] | None:
    law: dict[str, float] = _of_any_sign(runs, floor, exponents)
    return law if min(law["A"], law["B"]) >= 0 else None


@fit_law.misconception(
    "Both terms are 0 where the fit makes one of them negative. Only that one is 0: fit the other one alone."
)
def both_at_zero(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    law: dict[str, float] = _of_any_sign(runs, floor, exponents)
    return law if min(law["A"], law["B"]) >= 0 else law | {"A": 0.0, "B": 0.0}


@fit_law.misconception(
    "You choose the exponents by the largest error. Choose them by the sum of the squared errors of all runs."
)
def by_the_largest_error(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    size, text, loss = np.array(runs).T

    def largest(law: dict[str, float]) -> float:
        forecast = floor + law["A"] * size ** -law["a"] + law["B"] * text ** -law["b"]
        return float(np.abs(forecast / loss - 1).max())

    return min((_fit_pair(runs, floor, a, b) for a, b in product(exponents, repeat=2)), key=largest)


def _fit_pair(runs: Runs, floor: float, a: float, b: float) -> dict[str, float]:
    """Fit A and B for one pair of exponents."""
    size, text, loss = np.array(runs).T
    columns = np.stack([size**-a, text**-b], axis=1) / loss[:, None]
    scale = np.linalg.norm(columns, axis=0)
    (big_a, big_b), _ = _squares(columns / scale, 1 - floor / loss)
    return {"A": float(big_a / scale[0]), "B": float(big_b / scale[1]), "a": a, "b": b}


@fit_law.misconception(
    "You compute in fp32. Where sizes and texts grow in step, its seven digits are too few: use fp64."
)
def in_single_precision(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    size, text, loss = torch.tensor(runs).unbind(1)
    found = []
    for a, b in product(exponents, repeat=2):
        columns, target = torch.stack([size**-a / loss, text**-b / loss], dim=1), 1 - floor / loss
        part = torch.linalg.lstsq(columns, target[:, None]).solution[:, 0]
        for kept in (0, 1):
            if part[1 - kept] < 0:
                column = columns[:, kept]
                part = torch.zeros(2)
                part[kept] = column @ target / (column @ column)
        error = float((columns @ part - target).square().sum())
        found.append((error, float(part[0]), float(part[1]), a, b))
    return dict(zip("ABab", min(found)[1:], strict=True))


@fit_law.misconception("If A would be negative you refit B, but not the other way round: B may be negative, too.")
def only_one_refitted(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _one_refitted(runs, floor, exponents, refit="B")


@fit_law.misconception("If B would be negative you refit A, but not the other way round: A may be negative, too.")
def only_the_other_refitted(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    return _one_refitted(runs, floor, exponents, refit="A")


def _one_refitted(runs: Runs, floor: float, exponents: list[float], refit: str) -> dict[str, float]:
    """Fit both terms; where the term other than `refit` is negative, fit `refit` alone."""
    size, text, loss = np.array(runs).T
    kept, dropped = (0, 1) if refit == "A" else (1, 0)
    found = []
    for a, b in product(exponents, repeat=2):
        columns = np.stack([size**-a, text**-b], axis=1) / loss[:, None]
        scale = np.linalg.norm(columns, axis=0)
        part = np.linalg.lstsq(columns / scale, 1 - floor / loss, rcond=None)[0] / scale
        if part[dropped] < 0:
            part[dropped] = 0.0
            column = columns[:, kept]
            part[kept] = column @ (1 - floor / loss) / (column @ column)
        error = float(np.square(columns @ part - 1 + floor / loss).sum())
        found.append((error, float(part[0]), float(part[1]), a, b))
    return dict(zip("ABab", min(found)[1:], strict=True))


@fit_law.variant
def with_normal_equations(
    runs: list[tuple[float, float, float]], floor: float, exponents: list[float]
) -> dict[str, float]:
    best = None
    for a in exponents:
        for b in exponents:
            u = [1 / (loss * (n / 1e4) ** a) for n, _, loss in runs]
            v = [1 / (loss * (d / 1e6) ** b) for _, d, loss in runs]
            t = [1 - floor / loss for _, _, loss in runs]
            uu, vv = sum(x * x for x in u), sum(x * x for x in v)
            uv, ut, vt = (sum(map(float.__mul__, x, y)) for x, y in ((u, v), (u, t), (v, t)))
            tried = [(max(ut / uu, 0.0), 0.0), (0.0, max(vt / vv, 0.0))]
            if uu * vv != uv * uv:
                tried.append(((ut * vv - vt * uv) / (uu * vv - uv * uv), (vt * uu - ut * uv) / (uu * vv - uv * uv)))
            for p, q in tried:
                if p < 0 or q < 0:
                    continue
                error = sum((p * x + q * y - z) ** 2 for x, y, z in zip(u, v, t, strict=True))
                if best is None or error < best[0]:
                    best = error, {"A": p * 1e4**a, "B": q * 1e6**b, "a": a, "b": b}
    assert best is not None
    return best[1]


@fit_law.variant
def with_torch(runs: list[tuple[float, float, float]], floor: float, exponents: list[float]) -> dict[str, float]:
    n, d, loss = torch.tensor(runs, dtype=torch.float64).unbind(1)
    found = []
    for a in exponents:
        for b in exponents:
            x = torch.stack([n**-a / loss, d**-b / loss], 1)
            y = 1 - floor / loss
            for columns in ([0, 1], [0], [1]):
                z = x[:, columns] / x[:, columns].norm(dim=0)
                w = torch.linalg.lstsq(z, y[:, None], driver="gelsd").solution[:, 0]
                if (w < 0).any():
                    w = w * 0
                full = torch.zeros(2, dtype=torch.float64)
                full[columns] = w / x[:, columns].norm(dim=0)
                found.append((((x @ full - y) ** 2).sum().item(), full.tolist(), a, b))
    _, (big_a, big_b), a, b = min(found)
    return {"A": big_a, "B": big_b, "a": a, "b": b}


@fit_law.variant
def without_lists(runs: list[tuple[float, float, float]], floor: float, exponents: list[float]) -> dict[str, float]:
    table = np.array(runs)
    result, least = {}, np.inf
    for a, b in product(exponents, exponents):
        u, v = table[:, 0] ** -a / table[:, 2], table[:, 1] ** -b / table[:, 2]
        t = 1 - floor / table[:, 2]
        alone_u, alone_v = max(u @ t / (u @ u), 0), max(v @ t / (v @ v), 0)
        pairs = [(alone_u, 0.0), (0.0, alone_v)]
        rest_v = v - u * (u @ v) / (u @ u)
        if rest_v @ rest_v > 0:
            q = rest_v @ t / (rest_v @ rest_v)
            pairs.append(((t - q * v) @ u / (u @ u), q))
        for p, q in pairs:
            error = np.sum((p * u + q * v - t) ** 2)
            if min(p, q) >= 0 and error < least:
                result, least = {"A": p, "B": q, "a": a, "b": b}, error
    return result
