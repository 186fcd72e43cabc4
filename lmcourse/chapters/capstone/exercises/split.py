"""The exercise on the best division of a budget between the size of the model and the length of its text."""

from __future__ import annotations

import math
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _best(A: float, B: float, a: float, b: float, flops: float) -> tuple[float, float]:
    """Search by golden section over the logarithm of N: the loss has one minimum there."""
    product, golden = math.log(flops / 6), (math.sqrt(5) - 1) / 2

    def slope(n: float) -> float:
        return math.log(b * B) - b * (product - n) - math.log(a * A) + a * n

    low, high = -200.0, 300.0
    while high - low > 1e-13 * max(1.0, abs(low)):
        middle = low + golden * (high - low)
        if middle in (low, high):
            break
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return math.exp(low), math.exp(product - low)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("equal exponents", 50.0, 800.0, 0.5, 0.5, 6e10),
        case("equal exponents, equal factors", 7.0, 7.0, 0.3, 0.3, 6e8),
        case("the text is what is short", 2.0, 9e5, 0.4, 1.2, 6e11),
        case("the model is what is short", 5_000.0, 3.0, 0.9, 0.2, 2e10),
        case("the sizes of laboratories", 406.4, 410.7, 0.34, 0.28, 5.76e23),
    ]
    cases.append(case("a tiny budget", 50.0, 60_000.0, 0.6, 1.05, 6e5))
    for _ in range(2):
        a, b = random.sample([0.3, 0.45, 0.6, 0.8, 1.1], 2)
        factors = random.uniform(20, 90), random.uniform(1e3, 9e3)  # so that the best N is above 1
        cases.append(case("other laws", *factors, a, b, 10 ** random.uniform(10, 20)))
    return cases


best_split = Exercise(
    "best_split",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_best,
    cases=[
        case("a budget like ours", 50.0, 60_000.0, 0.6, 1.05, 2e11),
        case("equal exponents", 8.0, 32.0, 0.5, 0.5, 6e8),
        case("a law with slow terms", 406.4, 410.7, 0.34, 0.28, 5.76e23),
        case("a small budget", 50.0, 60_000.0, 0.6, 1.05, 5e7),
    ],
    hidden_cases=_hidden,
    hints=[
        "Put D = flops / (6 N) into the law: one unknown is left. Where is its derivative 0?",
        "At the minimum, a A / Nᵃ = b B / Dᵇ: one percent more of N helps as much as one percent more of D.",
        "N^(a + b) = (a A / (b B)) · (flops / 6)^b.",
    ],
    tolerance=Tolerance(5.1e-6),  # six digits
)


@best_split.variant
def ratio_times_power(A: float, B: float, a: float, b: float, flops: float) -> tuple[float, float]:
    product = flops / 6
    ratio = a * A / (b * B)
    N = ratio ** (1 / (a + b)) * product ** (b / (a + b))
    return N, product / N


best_split.slips(
    ratio_times_power,
    {
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → (product / 20) ** 0.5": "You take 20 tokens per "
        "parameter. That ratio was found for one law, one text and one tokenizer.",
        "product ** (b → flops ** (b": "The 6 is missing in N. A token costs six FLOPs per parameter: N · D is flops / "
        "6.",
        "flops / 6 → flops": "Your N · D is the budget itself. A token costs six FLOPs per parameter.",
        "product ** (b → product ** (a": "You swap the exponents of the budget: the larger a is, the more slowly N "
        "grows with it.",
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → product**0.5": "You give N and D the same size. That is "
        "right only for equal exponents and factors.",
        "a * A / (b * B) → A / B": "You make both terms equal. At the minimum, one percent more of N helps as much as "
        "one percent more of D, so a and b are factors.",
        "a * A / (b * B) → b * B / (a * A)": "Your ratio is upside down: N grows with a A, the price of a small model.",
        "a * A / (b * B) → a * B / (b * A)": "A and B are swapped.",
        "ratio ** (1 / (a + b)) * → ": "You take only the power of the budget. Its factor (a A / (b B))^(1 / (a + b)) "
        "is missing.",
        "ratio ** (1 / (a + b)) → ratio ** (a + b)": "You raise the ratio to a + b. To solve for N, raise it to 1 / "
        "(a + b).",
        "product / N → product": "Your D is C/6. It is what the budget leaves for each parameter: C/(6N).",
        "a * A / (b * B) → b * A / (a * B)": "In your ratio a and b are swapped: a belongs to A, and b to B.",
        "1 / (a + b) → 1 / (a + b + 1)": "You raise the factor to 1 / (a + b + 1). The derivatives of 1/Nᵃ and of Nᵇ "
        "have powers −a − 1 and b − 1, and their ratio has a + b.",
        "N, product / N → product / N, N": "You return (D, N). The parameters come first.",
        "product ** (b / (a + b)) → product": "You raise the ratio to 1 / (a + b), and the budget to 1. Its power is b "
        "/ (a + b).",
        "product ** (b / (a + b)) → product**b": "You raise the budget to b and take no root of it. Solve for N: the "
        "power is b / (a + b).",
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → (ratio * product) ** (1 / (a + b))": "You raise the "
        "budget to 1 / (a + b). It stands in the law as (C/6)ᵇ: its power is b / (a + b).",
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → ratio * product**b": "You stop at N^(a + b). Take the "
        "root, 1 / (a + b).",
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → (ratio * product**b) ** 0.5": "You take a square root. "
        "N^(a + b) needs the power 1 / (a + b).",
        "ratio ** (1 / (a + b)) * product ** (b / (a + b)) → (ratio * product**b) ** (1 / (a + b + 1))": "You take the "
        "root of a + b + 1. The derivatives of 1/Nᵃ and of Nᵇ have powers −a − 1 and b − 1, and their ratio has a + b.",
        "N, product / N → N, flops / N": "Your D is C/N. A token costs six FLOPs per parameter: D = C/(6N).",
        "flops / 6 → flops / 2": "You count two FLOPs per parameter and token. With the backward pass there are six.",
        "N, product / N → float(round(N)), float(round(product / N))": "You round to whole numbers. Six digits are "
        "asked, and a small N has fewer.",
        "N, product / N → round(N, 2), round(product / N, 2)": "You round to two places after the point. Six digits "
        "are asked, and a small N has fewer.",
    },
)


@best_split.misconception(
    "Six digits are asked: a grid of this step cannot give them. Use the formula, or narrow the step down."
)
def on_a_grid(A: float, B: float, a: float, b: float, flops: float) -> tuple[float, float]:
    sizes = np.geomspace(1e-30, 1e60, 200_001)
    sizes = sizes[np.argmin(A / sizes**a + B / (flops / 6 / sizes) ** b)] * np.geomspace(0.99, 1.01, 51)
    size = sizes[np.argmin(A / sizes**a + B / (flops / 6 / sizes) ** b)]
    return float(size), flops / 6 / float(size)


@best_split.variant
def by_bisection(A: float, B: float, a: float, b: float, flops: float) -> tuple[float, float]:
    low, high = 1e-30, 1e60
    for _ in range(400):
        size = math.sqrt(low) * math.sqrt(high)
        more_text_helps = b * B / (flops / 6 / size) ** b > a * A / size**a
        low, high = (low, size) if more_text_helps else (size, high)
    return size, flops / (6 * size)
