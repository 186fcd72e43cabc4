"""The exercise on the noise scale: the batch size up to which a larger batch is worth its price."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Scale = tuple[float, float, float]


def _scale(small: float, large: float, b_small: int, b_large: int) -> Scale:
    """Compute in exact fractions: B times the mean of ‖g‖² is linear in B, with slope ‖G‖² and the value σ² at 0."""
    if b_small == b_large:
        raise ValueError(f"the two batch sizes are equal: {b_small}")
    one, other = Fraction(small) * b_small, Fraction(large) * b_large
    squared = (other - one) / (b_large - b_small)
    noise = one - squared * b_small
    return float(squared), float(noise), float(noise / squared) if squared > 0 else math.inf


def squared_lengths(batch: int) -> float:
    """The mean of ‖g‖² over all batches of SIX drawn with replacement, where g is the mean of a batch."""
    found = [sum(sum(column) ** 2 for column in zip(*drawn, strict=True)) for drawn in product(SIX, repeat=batch)]
    return float(sum(found)) / (len(found) * batch**2)


SIX = [[3, 1], [-1, 2], [4, 0], [2, -3], [0, 1], [4, 5]]


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("batches of six gradients", squared_lengths(2), squared_lengths(4), 2, 4),
        case("batches of six gradients", squared_lengths(3), squared_lengths(4), 3, 4),
        case("no noise", 2.0, 2.0, 4, 64),
        case("nothing but noise", 8.0, 2.0, 2, 8),
        case("a ‖G‖² below 0", 9.0, 1.0, 4, 16),
        case("a σ² below 0", 0.7, 0.9, 2, 6),
        case("sizes that are equal", 3.0, 2.0, 8, 8),
    ]
    for _ in range(3):
        squared, noise, b = random.uniform(0.1, 2.0), random.uniform(1.0, 200.0), random.randint(2, 16)
        b_large = b * random.randint(3, 20)
        cases.append(case("other measurements", squared + noise / b, squared + noise / b_large, b, b_large))
    return cases


noise_scale = Exercise(
    "noise_scale",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_scale,
    cases=[
        case("gradients 1 and 3, sizes 1 and 2", 5.0, 4.5, 1, 2),
        case("the same two, sizes 2 and 4", 4.5, 4.25, 2, 4),
        case("six gradients, sizes 2 and 3", squared_lengths(2), squared_lengths(3), 2, 3),
        case("a net, sizes 4 and 64", 0.9, 0.3, 4, 64),
        case("a ‖G‖² below 0", 5.0, 1.0, 2, 8),
        case("a ‖G‖² of exactly 0", 8.0, 2.0, 2, 8),
        case("a σ² below 0", 1.0, 1.5, 2, 8),
        case("equal sizes", 5.0, 4.5, 4, 4),
    ],
    hidden_cases=_hidden,
    hints=[
        "A batch gradient is the full gradient plus noise, and the noise is 0 on average. What does that make of the "
        "mean of its squared length?",
        "E‖g_B‖² = ‖G‖² + σ²/B. You have two such equations, one for each size, and two unknowns.",
        "Subtract them: ‖G‖² is gone, and what is left is σ² times (1/b_small − 1/b_large). Check the sizes first, "
        "and the sign of ‖G‖² before you divide by it.",
    ],
    tolerance=Tolerance(1e-8, 1e-9),
)


@noise_scale.variant
def two_equations(small: float, large: float, b_small: int, b_large: int) -> tuple[float, float, float]:
    if b_small == b_large:
        raise ValueError("the two batch sizes are equal")
    noise = (small - large) / (1 / b_small - 1 / b_large)
    squared = small - noise / b_small
    return squared, noise, noise / squared if squared > 0 else math.inf


noise_scale.slips(
    two_equations,
    {
        "if b_small == b_large: → b_small, b_large = b_small - 1, b_large - 1\n    if b_small == b_large:": "Your "
        "noise of a batch is σ²/(B − 1). The mean of B independent draws has σ²/B.",
        "(small - large) → (large - small) ;; squared = small → squared = large": "The two sizes are swapped: `small` "
        "was measured with batches of `b_small`.",
        "return squared → noise = math.sqrt(max(noise, 0.0))\n    return squared": "That is σ, the spread. Return its "
        "square, the variance, and divide that by ‖G‖².",
        "small - noise / b_small → large": "You use the larger batch's ‖g‖² as ‖G‖². It still contains noise, "
        "σ²/b_large: subtract it.",
        "/ (1 / b_small - 1 / b_large) → * b_small ;; small - noise / b_small → large": "You take `large` for ‖G‖², "
        "and `small` − `large` for σ²/b_small. But `large` still contains the noise σ²/b_large.",
        "1 / b_small - 1 / b_large → b_small**-0.5 - b_large**-0.5 ;; noise / b_small → noise * b_small**-0.5": "Your "
        "noise falls with √B. The spread does; the mean of the squared length has σ²/B.",
        "noise / squared if squared > 0 → max(squared, 0.0) / noise if noise": "Your quotient is upside down: B is "
        "σ²/‖G‖².",
        " / (1 / b_small - 1 / b_large) → ": "The difference of the two is not σ²: it is σ² times (1/b_small − "
        "1/b_large).",
        "if squared > 0 → if squared": "Your B is negative where ‖G‖² is. No batch is large enough there: return "
        "math.inf.",
        "if squared > 0 → if squared >= 0": "Where ‖G‖² is exactly 0 you divide by it. No batch is large enough there, "
        "either: return math.inf.",
        "return squared → return max(squared, 0.0)": "You set a ‖G‖² below 0 to 0. Return it as measured; only B "
        "becomes math.inf.",
        "return squared → squared = math.sqrt(max(squared, 0.0))\n    return squared": "You return ‖G‖ and not its "
        "square.",
        "(small - large) → abs(small - large)": "You make σ² positive. Return it as measured, also below 0.",
        "(small - large) → abs(small - large) ;; small - noise / b_small → large - noise / b_large": "You make σ² "
        "positive. Return it as measured, also below 0.",
        "return squared → noise = abs(noise)\n    return squared": "You make σ² positive. Return it as measured, also "
        "below 0.",
        "(small - large) → max(small - large, 0.0)": "You set a σ² below 0 to 0. Return it as measured.",
        "(small - large) → max(small - large, 0.0) ;; small - noise / b_small → large - noise / b_large": "You set a "
        "σ² below 0 to 0. Return it as measured.",
        "return squared → noise = max(noise, 0.0)\n    return squared": "You set a σ² below 0 to 0. Return it as "
        "measured.",
        '    if b_small == b_large:\n        raise ValueError("the two batch sizes are equal")\n → ': "For equal sizes "
        "you divide by 0. They say nothing: raise ValueError.",
        "return squared, noise, → return noise, squared,": "You return σ² before ‖G‖².",
    },
)


@noise_scale.variant
def by_a_linear_system(small: float, large: float, b_small: int, b_large: int) -> tuple[float, float, float]:
    if b_small == b_large:
        raise ValueError("the two batch sizes are equal")
    squared, noise = np.linalg.solve([[1, 1 / b_small], [1, 1 / b_large]], [small, large])
    scale = noise / squared if squared > 0 else float("inf")
    return float(squared), float(noise), float(scale)
