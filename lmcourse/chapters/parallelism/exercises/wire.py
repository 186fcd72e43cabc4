"""The exercise on α and β of a wire."""

from __future__ import annotations

from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def with_polyfit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    s, t = np.array(sizes, dtype=float), np.array(seconds)
    if s.min() == s.max():
        raise ValueError("one size")
    beta, alpha = np.polyfit(s, t, 1, w=1 / t)
    if alpha < 0:
        alpha, beta = 0.0, (s / t).sum() / ((s / t) ** 2).sum()
    return alpha, beta


def _hidden(random: Random) -> list[Case]:
    sizes = sorted(random.sample(range(1000, 400_000), 6))
    noise = [round((2e-3 + 3e-8 * size) * random.uniform(0.8, 1.25), 7) for size in sizes]
    return [
        case("other times", sizes, noise),
        case("other times", [4, 1000, 50_000], [3e-5, 3.3e-5, 1.3e-4]),
        case("a negative start", [1000, 8000, 64_000], [4e-6, 4.1e-5, 3.1e-4]),
        case("sizes twice", [64, 64, 4096, 4096], [2e-4, 2.5e-4, 9e-4, 8e-4]),
        edge(case("one size, twice", [4096] * 3, [1e-3, 2e-3, 3e-3])),
    ]


fit_wire = Exercise(
    "fit_wire",
    points=3,
    minutes=6,
    difficulty=2,
    reference=with_polyfit,
    cases=[
        case("on a line", [1000, 5000], [0.003, 0.011]),
        case("with noise", [4, 100_000, 1_000_000, 4_000_000], [0.002, 0.0018, 0.0055, 0.02]),
        case("not in order, a size twice", [1_000_000, 4, 200_000, 4], [0.004, 0.0003, 0.0009, 0.0005]),
        case("the best line starts below 0", [1000, 2000, 8000], [0.00002, 0.00005, 0.0003]),
        edge(case("one size, twice", [1000, 1000], [0.003, 0.004])),
        edge(case("one measurement", [1000], [0.003])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Divide each equation α + β·size = seconds by its seconds. Then the right side is 1 everywhere, and ordinary "
        "least squares of these equations are those of the relative errors.",
        "torch.linalg.lstsq(rows, ones) takes a row (1/seconds, size/seconds) for each measurement, in float64; its "
        "`solution` is (α, β), a column.",
        "If α comes out below 0, one unknown is left, β: it is Σ(size/seconds) / Σ(size/seconds)².",
    ],
    may_use_package=True,
    tolerance=Tolerance(1e-3, 1e-13),
)
fit_wire.variant(with_polyfit)


fit_wire.equivalent_mutant("if alpha < 0: → if alpha <= 0:", "For α = 0 both lines are the same.")
fit_wire.equivalent_mutant(", dtype=torch.float64) → )", "fp32 is exact enough for measured times.")


@fit_wire.variant
def divided_rows(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    if len(set(sizes)) < 2:
        raise ValueError
    s, t = torch.tensor(sizes).double(), torch.tensor(seconds).double()
    w = 1 / t
    alpha, beta = torch.linalg.lstsq(torch.stack([w, w * s], dim=1), w * t).solution
    if alpha < 0:
        alpha, beta = 0.0, sum(s / t) / sum((s / t) ** 2)
    return float(alpha), float(beta)


fit_wire.slips(
    divided_rows,
    {
        "w = 1 / t → w = torch.ones_like(t)": "You take the squares of the errors in seconds: the largest message "
        "alone decides, and α is what is left over. Divide each error by its seconds.",
        "w = 1 / t → w = torch.ones_like(t) ;; sum(s / t) / sum((s / t) ** 2) → sum(s * t) / sum(s * s)": "You take "
        "the squares of the errors in seconds, not of the relative errors: the largest message alone decides.",
        "w = 1 / t → w = t.rsqrt()": "You divide the *squares* of the errors by the seconds. Divide the errors, before "
        "they are squared.",
        "w = 1 / t → w = 1 / t**2": "You weight the errors with 1/seconds². Divide each error by its seconds once; "
        "squaring comes afterwards.",
        "return float(alpha), float(beta) → return float(alpha), float(1 / beta)": "Your second number is a bandwidth, "
        "bytes per second. β is its inverse, seconds per byte.",
        "return float(alpha), float(beta) → return float(beta), float(alpha)": "You return β first. α comes first, "
        "then β.",
        "if alpha < 0: → beta = (t[s.argmax()] - t[s.argmin()]) / (s.max() - s.min())\n    alpha = t[s.argmin()] - "
        "beta * s.min()\n    if alpha < 0:": "Your line goes through the smallest and the largest message only. Let "
        "all measurements count.",
        "if alpha < 0: → beta = (t[-1] - t[0]) / (s[-1] - s[0])\n    alpha = t[0] - beta * s[0]\n    if alpha < "
        "0:": "Your line goes through the first and the last measurement only. Let all of them count.",
        "if alpha < 0: → alpha = t[s.argmin()]\n    beta = sum(s * (t - alpha) / t**2) / sum((s / t) ** 2)\n    if "
        "alpha < 0:": "Your α is the time of the smallest message. It is measured no more exactly than the others: fit "
        "α and β together.",
        "alpha < 0 → False": "Your α can be below 0: a message would arrive before it is sent. Then take α = 0.",
        "alpha, beta = 0.0, → alpha, _ = 0.0,": "You set α to 0 and keep the β of the other line. With α = 0 another β "
        "fits best.",
        "sum(s / t) / sum((s / t) ** 2) → (t / s).mean()": "With α = 0 you take the mean of seconds / size. That is no "
        "least squares of the relative errors: minimise Σ (β·size/seconds − 1)².",
        "sum(s / t) / sum((s / t) ** 2) → sum(s * t) / sum(s * s)": "With α = 0 your β fits the errors in seconds. "
        "Take the relative errors there, too.",
        "alpha, beta = 0.0, → alpha, _ = -alpha,": "Your α is the distance from 0. If the best line starts below 0, "
        "take α = 0 and the β that fits best with it.",
        "len(set(sizes)) → len(sizes)": "Two messages of one size say nothing about β: raise a ValueError if there are "
        "fewer than two *different* sizes.",
        "len(set(sizes)) < 2 → False": "With one size every β fits: raise a ValueError.",
        "raise ValueError → return seconds[0], 0.0": "You invent a line for a single size. Raise a ValueError: nothing "
        "is known about β.",
        "return float(alpha) → return 1e3 * float(alpha)": "Your α is in milliseconds. Both numbers are in seconds.",
        "if alpha < 0: → beta, alpha = np.polyfit(s.log(), t.log(), 1)\n    alpha = np.exp(alpha)\n    if alpha < "
        "0:": "You fit a line to the logarithms: that is a power of the size. Seconds grow by β with every byte.",
    },
)
