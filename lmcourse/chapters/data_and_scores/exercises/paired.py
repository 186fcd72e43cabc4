"""The exercise on the difference of two models, and its error."""

from __future__ import annotations

import math
import statistics
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _difference(a: list[int], b: list[int]) -> tuple[float, float, float]:
    """Return the results, with the variance of a difference as that of two sums."""
    n = len(a)
    mean_a, mean_b = math.fsum(a) / n, math.fsum(b) / n
    var_a, var_b = (math.fsum((x - m) ** 2 for x in xs) / (n - 1) for xs, m in ((a, mean_a), (b, mean_b)))
    together = math.fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / (n - 1)
    paired = max(0.0, var_a + var_b - 2 * together)
    return mean_a - mean_b, math.sqrt(paired / n), math.sqrt((var_a + var_b) / n)


def _hidden(random: Random) -> list[Case]:
    def drawn(n: int, agree: float) -> tuple[list[int], list[int]]:
        a = [1, 0, *(int(random.random() < 0.7) for _ in range(n - 2))]
        return a, [0, 0, *(x if random.random() < agree else 1 - x for x in a[2:])]

    return [
        case("models that agree", *drawn(12, 0.9)),
        case("models that agree", *drawn(20, 0.8)),
        case("models that disagree", *drawn(9, 0.3)),
        case("models that disagree", [1, 0, 1, 0], [0, 1, 0, 1]),
        case("the same answers", [1, 0, 1, 1, 0], [1, 0, 1, 1, 0]),
    ]


paired_difference = Exercise(
    "paired_difference",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_difference,
    cases=[
        case("five questions, one differs", [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]),
        case("eight questions", [1, 1, 1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0, 1, 0]),
        case("the second is better", [0, 1, 0, 1, 0, 0], [1, 1, 0, 1, 1, 0]),
        case("the same answers", [1, 0, 0, 1], [1, 0, 0, 1]),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-5, 1e-6),
    hints=[
        "Make one list of differences: 1, 0 or −1 a question. It is a sample like any other.",
        "The standard error of a mean is s / √n; s² divides the squares by n − 1 (statistics.variance does).",
        "As if independent: the variances of the two means add up, so √((s_a² + s_b²) / n).",
    ],
)


@paired_difference.variant
def with_torch(a: list[int], b: list[int]) -> tuple[float, float, float]:
    n = len(a)
    x, y = torch.tensor(a).float(), torch.tensor(b).float()
    d = x - y
    paired = (d.var() / n).sqrt().item()
    independent = ((x.var() + y.var()) / n).sqrt().item()
    return d.mean().item(), paired, independent


@paired_difference.variant
def with_statistics(a: list[int], b: list[int]) -> tuple[float, float, float]:
    d = [x - y for x, y in zip(a, b, strict=True)]
    errors = [statistics.stdev(each) / len(each) ** 0.5 for each in (a, b, d)]
    return statistics.fmean(d), errors[2], math.hypot(*errors[:2])


_BOTH = (
    "Your paired error adds both variances, as if the questions were not the same. Take the error of the differences."
)
_BY_N = "You divide the squares by n. The mean comes from the same numbers, so divide by n − 1."
_ROOT = "The error of a mean shrinks with √n: divide the standard deviation by √n, not by n."
_ADDED = "You add two errors. Their squares add up."

paired_difference.slips(
    with_torch,
    {
        "d.var() / n → (x.var() + y.var()) / n": _BOTH,
        "(d.var() / n).sqrt() → d.std() / n ;; ((x.var() + y.var()) / n).sqrt() → (x.var() + "
        "y.var()).sqrt() / n": _ROOT,
        "d.var() / n → d.var() ;; (x.var() + y.var()) / n → x.var() + y.var()": "You return the spread of single "
        "questions. The error of a mean over n of them is √n times smaller.",
        "d.var() / n).sqrt() → d.var() / n) ;; (x.var() + y.var()) / n).sqrt() → (x.var() + y.var()) / n)": "These are "
        "variances of means. The error is the root.",
        "d.var() → d.var(correction=0) ;; x.var() + y.var() → x.var(correction=0) + y.var(correction=0)": _BY_N,
        "x.var() + y.var() → x.mean() * (1 - x.mean()) + y.mean() * (1 - y.mean())": "p(1 − p) divides the squares by "
        "n. Divide by n − 1 in both errors.",
        "d = x - y → d = y - x": "Your difference is that of b and a. Subtract b from a.",
        "d = x - y → d = (x - y).abs()": "You drop the signs: questions that only b gets right count for a.",
        "d.var() → d.abs().var()": "You drop the signs for the error: a question that only b gets right counts as −1.",
        "paired, independent → independent, paired": "You swap the two errors. The paired one comes first.",
        "((x.var() + y.var()) / n).sqrt() → (x.var() / n).sqrt() + (y.var() / n).sqrt()": _ADDED,
        "(x.var() + y.var()) / n → (x.var() + y.var()) / (2 * n)": "You average the two variances. The variance of a "
        "difference is their sum.",
        "(x.var() + y.var()) / n → x.var() / n": "Your independent error is that of a alone. Both models have one.",
        "d.mean().item() → x.sum().item() - y.sum().item()": "You count questions. The difference of two accuracies is "
        "a fraction of n.",
    },
)

paired_difference.slips(
    with_statistics,
    {
        "errors[2] → math.hypot(*errors[:2])": _BOTH,
        "len(each) ** 0.5 → len(each)": _ROOT,
        "statistics.stdev → statistics.pstdev": _BY_N,
        "math.hypot(*errors[:2]) → sum(errors[:2])": _ADDED,
    },
)
