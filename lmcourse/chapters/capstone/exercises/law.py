"""The exercise on the law of the loss, fitted to small runs with a known floor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import torch

from lmcourse.chapters.capstone.law import fit
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Runs = list[tuple[float, float, float]]
GRID = [0.3, 0.5, 0.6, 0.8, 0.95, 1.05]
SIZES = [(10_000, 3e5), (20_000, 1e5), (10_000, 1e6), (70_000, 4e5), (33_000, 2e6), (250_000, 3e5), (70_000, 1.4e6)]


def _made(law: Sequence[float], floor: float, noise: float = 0.0, sizes: Sequence[Sequence[float]] = SIZES) -> Runs:
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


# fp64 has digits enough for any way to fit these, fp32 for none, whatever the processor.
IN_STEP = [(1e4, 2e5), (4e4, 8.00016e5), (1e5, 2.00008e6), (3e5, 6e6), (9e5, 1.800036e7)]
LARGE = [(7e7, 3e9), (4e8, 8e9), (1e9, 1e9), (7e9, 1.4e11), (1.6e10, 2e10), (7e10, 1.4e12)]

fit_law = Exercise(
    "fit_law",
    points=4,
    minutes=13,
    difficulty=3,
    reference=fit,
    cases=[
        case("six runs that obey a law", _made(LAW, 0.2)[:6], 0.2, GRID),
        case("runs with noise, two pairs to choose from", _made(LAW, 0.2, 0.02), 0.2, [0.6, 1.05]),
        case("more parameters do not help", _made((-1.0, 600.0, 0.6, 0.6), 0.2, 0.01), 0.2, [0.6]),
        case("more text does not help", _made((30.0, -20.0, 0.6, 0.6), 0.2, 0.01), 0.2, [0.6]),
        case("runs with noise, all pairs", _made((25.0, 70_000.0, 0.5, 1.05), 0.3, 0.03), 0.3, GRID),
        case("runs with much noise, all pairs", _made(LAW, 0.2, 0.25), 0.2, GRID),
        case("a term that would be slightly negative", _made((-0.5, 6_000.0, 0.5, 0.5), 0.2), 0.2, [0.5]),
        case("size and text in step", _made((30.0, 200.0, 0.5, 0.5), 0.3, 0.0, IN_STEP), 0.3, [0.5]),
        case("a larger exponent for the parameters", _made((60_000.0, 50.0, 1.05, 0.6), 0.2), 0.2, GRID),
        case("a small factor", _made((0.0123456, 45.6789, 0.3, 0.5), 0.2), 0.2, [0.3, 0.5]),
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
    tolerance=Tolerance(5.1e-4, 1e-7),  # four digits
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


@fit_law.variant
def pair_after_pair(runs: list[tuple[float, float, float]], floor: float, exponents: list[float]) -> dict[str, float]:
    N, D, loss = torch.tensor(runs, dtype=torch.float64).unbind(1)
    target = 1 - floor / loss
    found = []
    for a, b in product(exponents, repeat=2):
        columns = torch.stack([N**-a / loss, D**-b / loss], dim=1)
        law = torch.linalg.lstsq(columns, target[:, None]).solution[:, 0]
        for kept in (0, 1):
            if law[1 - kept] < 0:
                column = columns[:, kept]
                law = torch.zeros_like(law)
                law[kept] = column @ target / (column @ column)
        error = (columns @ law - target).square().sum()
        found.append((float(error), *law.tolist(), a, b))
    _, A, B, a, b = min(found)
    return {"A": A, "B": B, "a": a, "b": b}


fit_law.slips(
    pair_after_pair,
    {
        "N**-a / loss, D**-b / loss → N**-a, D**-b ;; 1 - floor / loss → loss - floor": "You compare absolute errors, "
        "so the large losses decide. Compare relative errors.",
        "1 - floor / loss → torch.ones_like(loss)": "Your fit has no floor, so N and D must explain what no model can "
        "learn.",
        "target = 1 - floor / loss → loss = loss - floor\n    target = torch.ones_like(loss)": "You subtract the "
        "floor before you compare. The relative error is a fraction of the whole loss.",
        "law[1 - kept] < 0 → False": "A term of yours is negative. In this law more parameters or more text cannot "
        "hurt.",
        "N**-a / loss, D**-b / loss → N**-a, D**-b ;; 1 - floor / loss → loss - floor ;; law[1 "
        "- kept] < 0 → False": "Two things: you compare absolute errors, where relative ones count, and a term is "
        "negative.",
        "product(exponents, → product(exponents[:1],": "You stop at the first pair of exponents. Try all, and keep "
        "the one with the smallest error.",
        '"A": A, "B": B, "a": a, "b": b → "A": B, "B": A, "a": b, "b": a': "A and B are swapped: A and a belong to "
        "the parameters, B and b to the text.",
        "product(exponents, repeat=2) → zip(exponents, exponents, strict=True)": "You give both terms the same "
        "exponent. Parameters and text have separate exponents.",
        "in product(exponents, → in product([-exponent for exponent in exponents],": "You multiply by Nᵃ. The term "
        "falls when the model grows: divide by it.",
        "N**-a / loss, D**-b / loss → N**a / loss, D**b / loss": "You multiply by Nᵃ. The term falls when the model "
        "grows: divide by it.",
        'law[1 - kept] < 0 → False ;; "A": A, "B": B → "A": max(A, 0.0), "B": max(B, 0.0)': "You set a negative term "
        "to 0 and keep the other as it was. Fit the other one again, alone.",
        "law[1 - kept] < 0 → False ;; return { → return None if min(A, B) < 0 else {": "You discard exponents with "
        "which A or B comes out negative, so no law is left. They have a best law that is allowed: one term is 0.",
        "law[1 - kept] < 0 → False ;; return { → if min(A, B) < 0:\n        A = B = 0.0\n    return {": "Both terms "
        "are 0 where the fit makes one of them negative. Only that one is 0: fit the other one alone.",
        ".square().sum() → .abs().max()": "You choose the exponents by the largest error. Choose them by the sum of "
        "the squared errors of all runs.",
        ", dtype=torch.float64 → ": "You compute in fp32. Where sizes and texts grow in step, its seven digits are "
        "too few: use fp64.",
        "in (0, 1) → in (1,)": "If A would be negative you refit B, but not the other way round: B may be negative, "
        "too.",
        "in (0, 1) → in (0,)": "If B would be negative you refit A, but not the other way round: A may be negative, "
        "too.",
        'return {"A": A, "B": B → return {"A": round(A, 4), "B": round(B, 4)': "You round A and B to four places after "
        "the point. Four *digits* are asked: a small factor loses most of its own.",
        "law[1 - kept] < 0 → False ;; found.append → if min(law) >= 0:\n            found.append": "You discard "
        "exponents with which A or B comes out negative, so no law is left. They have a best law that is allowed: one "
        "term is 0.",
        "law[1 - kept] < 0 → False ;; found.append → if min(law) >= 0:\n            found.append ;; min(found) → "
        "min(found, default=None)": "You discard exponents with which A or B comes out negative, so no law is left. "
        "They have a best law that is allowed: one term is 0.",
        '"a": a, "b": b → "a": b, "b": a': "a and b are swapped: a is the exponent of the parameters.",
        "(columns @ law - target).square() → (columns @ law - target).abs()": "You choose the exponents by the sum of "
        "the errors. Choose them by the sum of their squares.",
        "(columns @ law - target).square() → ((columns @ law - target) * loss).square()": "You choose the exponents by "
        "absolute errors. Choose them by relative ones, like A and B.",
        "(columns @ law - target).square() → ((floor / loss + columns @ "
        "law).clamp(min=1e-9).log()).square()": "You choose the exponents by the errors of the logarithm. Choose them "
        "by the squared relative errors, as you do A and B.",
        'return {"A": A, "B": B → return {"A": round(A, 2), "B": round(B, 2)': "You round A and B to two places after "
        "the point. Four *digits* are asked: a small factor loses most of its own.",
    },
)


@fit_law.misconception("You fit a straight line to logarithms. The law is a sum, and its logarithm is no line.")
def logs(runs: Runs, floor: float, exponents: list[float]) -> dict[str, float]:
    size, text, loss = np.log(np.array(runs)).T
    line = np.linalg.lstsq(np.stack([np.ones_like(size), -size, -text], axis=1), loss, rcond=None)[0]
    return {"A": float(np.exp(line[0])), "B": float(np.exp(line[0])), "a": float(line[1]), "b": float(line[2])}


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
