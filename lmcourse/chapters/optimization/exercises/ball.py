"""The exercise on the best rate and momentum of the heavy ball in a bowl."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _best(mu: float, L: float) -> tuple[float, float, float]:
    """Let both ends of the spectrum converge equally fast: 1 − √(γμ) = √(γL) − 1 = √β."""
    root = 2 / (math.sqrt(mu) + math.sqrt(L))
    factor = max(0.0, 1 - root * math.sqrt(mu))
    return root**2, factor**2, factor


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("a round bowl", 3.0, 3.0),
        case("a very flat direction", 1e-6, 1.0),
        case("another unit", 0.02, 2.0),
        case("another unit", 1e3, 1e5),
        case("whole numbers", 4, 9),
    ]
    for _ in range(4):
        mu = random.uniform(0.01, 5.0)
        cases.append(case("other bowls", mu, mu * random.uniform(1.5, 5000)))
    return cases


best_momentum = Exercise(
    "best_momentum",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_best,
    cases=[
        case("a valley of 1 to 100", 1.0, 100.0),
        case("the same, a thousand times as steep", 1000.0, 100_000.0),
        case("a mild one", 1.0, 4.0),
        case("a round bowl", 4.0, 4.0),
        case("a valley of 1/50 to 2", 0.02, 2.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Take both conditions as equations: √β = 1 − √(γμ) for the flattest direction and √β = √(γL) − 1 for the "
        "steepest.",
        "Two equations, two unknowns: set them equal and solve for √γ. Then insert it to get √β.",
        "√γ = 2/(√L + √μ). With γ known, √β = 1 − √(γμ) is the third number, and its square the second.",
    ],
)


@best_momentum.variant
def root_by_root(mu: float, L: float) -> tuple[float, float, float]:
    flat, steep = math.sqrt(mu), math.sqrt(L)
    rate = (2 / (steep + flat)) ** 2
    factor = (steep - flat) / (steep + flat)
    beta = factor**2
    return rate, beta, factor


best_momentum.slips(
    root_by_root,
    {
        "factor**2 → factor": "Your second and third numbers are both √β. The momentum, β, is its square.",
        "return rate, beta, factor → return rate, beta, beta": "Your third number is β. The error shrinks by its root, "
        "√β, in each step.",
        "(steep - flat) / (steep + flat) → (L - mu) / (L + mu)": "You use κ where √κ belongs: (κ − 1)/(κ + 1) is the "
        "factor without momentum.",
        "math.sqrt(mu), math.sqrt(L) → mu, L": "You use L and μ where √L and √μ belong, in all three numbers.",
        "(2 / (steep + flat)) ** 2 → 2 / (L + mu)": "2/(L + μ) is the best rate without momentum. With momentum a "
        "larger rate is better.",
        "(2 / (steep + flat)) ** 2 → 2 / (L + mu) ;; (steep - flat) / (steep + flat) → (L - mu) / (L + mu) ;; beta = "
        "factor**2 → beta = 0.0": "That is the best that descent can do without memory. With β above 0, another rate "
        "is best, and the error falls faster.",
        "(2 / (steep + flat)) ** 2 → 1 / L": "1/L is a safe rate, but not the best one.",
        "(2 / (steep + flat)) ** 2 → 1 / L ;; (steep - flat) / (steep + flat) → 1 - flat / steep": "With γ = 1/L the "
        "flattest direction alone decides. A larger rate helps it, until the steepest needs as large a β.",
        "(2 / (steep + flat)) ** 2 → 1 / L ;; beta = factor**2 → beta, factor = factor, math.sqrt(factor)": "γ = 1/L "
        "with β = (√κ − 1)/(√κ + 1) is the usual choice for Nesterov's rule. The heavy ball's best β is the square of "
        "that, and its best rate is larger.",
        "beta = factor**2 → beta, factor = factor, math.sqrt(factor)": "Your momentum is the root of what it should "
        "be: √β is the factor, and β its square.",
        "(2 / (steep + flat)) ** 2 → 4 / (steep + flat)": "You return √γ, or a multiple of it. Square the sum of the "
        "roots.",
        "(2 / → (1 /": "Your rate is a quarter of the best one. The 2 in 2/(√L + √μ) is missing, and it is squared "
        "with the rest.",
        "(2 / (steep + flat)) ** 2 → 4 / (L + mu)": "You square the roots separately: 4/(L + μ). Square their *sum*.",
        "(2 / (steep + flat)) ** 2 → (2 / (steep / flat + 1)) ** 2": "Your rate is right for μ = 1 only: a bowl μ "
        "times as steep needs a rate μ times smaller. Divide by μ, or write √L + √μ.",
        "steep - flat → flat - steep": "You swapped the flat and the steep direction: your factor is negative.",
        "beta = factor**2 → beta, factor = 0.9, math.sqrt(0.9)": "β = 0.9 is a habit. The best β depends on the ratio "
        "of the steepest to the flattest curvature.",
    },
)
