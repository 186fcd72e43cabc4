"""The exercise on pass@k from n samples."""

from __future__ import annotations

import math
from itertools import combinations
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _pass_at_k(n: int, c: int, k: int) -> float:
    """Draw the k samples one after the other; small numbers by counting all draws."""
    if n <= 8:
        draws = list(combinations([True] * c + [False] * (n - c), k))
        return sum(map(any, draws)) / len(draws)
    none = 1.0
    for drawn in range(k):
        none *= max(0, n - c - drawn) / (n - drawn)
    return 1 - none


def _hidden(random: Random) -> list[Case]:
    n = random.randint(30, 60)
    return [
        case("some are right", 6, 1, 3),
        case("some are right", n, random.randint(2, 6), random.randint(3, 9)),
        case("few are wrong", 7, 5, 4),
        case("few are wrong", 20, 15, 10),
        case("none is right", 6, 0, 6),
        case("all are right", 6, 6, 1),
        edge(case("many samples", 1000, 10, 100)),
    ]


pass_at_k = Exercise(
    "pass_at_k",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_pass_at_k,
    cases=[
        case("2 of 8 right, one drawn", 8, 2, 1),
        case("2 of 8 right, four drawn", 8, 2, 4),
        case("1 of 8 right, all drawn", 8, 1, 8),
        case("6 of 8 right, four drawn", 8, 6, 4),
        case("none right, all drawn", 8, 0, 8),
        edge(case("200 samples", 200, 3, 100)),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-6, 1e-9),
    hints=[
        "When do k samples fail together? When all k are among the n − c wrong ones.",
        "How many ways are there to choose k of n, and how many to choose k of the wrong ones?",
        "1 − math.comb(n − c, k) / math.comb(n, k); math.comb gives 0 if there are fewer than k.",
    ],
)


@pass_at_k.variant
def with_binomials(n: int, c: int, k: int) -> float:
    return 1 - math.comb(n - c, k) / math.comb(n, k)


@pass_at_k.variant
def with_factorials(n: int, c: int, k: int) -> float:
    if n - c < k:
        return 1.0
    wrong = math.factorial(n - c) // math.factorial(n - c - k)
    return 1 - wrong / (math.factorial(n) // math.factorial(n - k))


@pass_at_k.variant
def one_after_the_other(n: int, c: int, k: int) -> float:
    none = 1.0
    for i in range(k):
        none *= max(0, n - c - i) / (n - i)
    return 1 - none


_BACK = "You put each sample back. Without that, 1 right one of n always shows among n; (1 − c/n)ⁿ is not 0."
_ALL_WRONG = "That is the chance that all k are wrong. Subtract it from 1."

pass_at_k.slips(
    with_binomials,
    {
        "math.comb(n - c, k) / math.comb(n, k) → (1 - c / n) ** k": _BACK,
        "1 - math.comb → math.comb": _ALL_WRONG,
        "1 - math.comb(n - c, k) → math.comb(c, k)": "That is the chance that all k are right. One is enough.",
        "n - c, k → c, k": "You subtract the chance that all k are right. Subtract the chance that all are wrong.",
        "1 - math.comb(n - c, k) / math.comb(n, k) → min(1, k * c / n)": "You add up the chances of single samples. "
        "Draws with two right ones then count twice.",
        "1 - math.comb(n - c, k) / math.comb(n, k) → c / n": "That is pass@1 for every k.",
        "math.comb(n - c, k) / math.comb(n, k) → math.perm(n - c, k) / math.comb(n, k)": "You count orders above and "
        "sets below the line. Use one of the two in both places.",
        "1 - math.comb(n - c, k) / math.comb(n, k) → c * math.comb(n - c, k - 1) / math.comb(n, k)": "That is the "
        "chance that exactly one is right. At least one is enough.",
    },
)

pass_at_k.slips(
    with_factorials,
    {
        "if n - c < k:\n        return 1.0\n    wrong → wrong": "With fewer than k wrong samples, k of them cannot "
        "all be wrong: the result is 1.",
        "n - c < k → n - c <= k": "With exactly k wrong samples, a draw can still miss: all k can be wrong.",
        "return 1.0 → return 0.0": "With fewer than k wrong samples, one of k must be right: 1, not 0.",
    },
)

pass_at_k.slips(
    one_after_the_other,
    {
        "- i) / (n - i) → ) / n": _BACK,
        "/ (n - i) → / n": "Each sample that is drawn also leaves the n: the next one comes from n − 1.",
        "range(k) → range(k + 1)": "You draw k + 1 samples.",
        "return 1 - none → return none": _ALL_WRONG,
    },
)
