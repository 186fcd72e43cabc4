"""The exercise on the weights in a running mean that starts at 0."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Weights = list[float]


def _weights(betas: Weights) -> Weights:
    """Run the recursion in exact fractions, once for each gradient: it is 1 at its own step and 0 at all others."""
    fractions = [Fraction(beta) for beta in betas]
    found = []
    for own in range(len(fractions)):
        m = Fraction(0)
        for step, beta in enumerate(fractions):
            m = beta * m + (1 - beta) * (step == own)
        found.append(m)
    return [float(m / sum(found)) for m in found]


def _hidden(random: Random) -> list[Case]:
    cases = [
        edge(case("no step", [])),
        case("one step", [0.999]),
        case("β = 0 in the first step", [0.0, 0.9, 0.5]),
        case("β = 0 in the last step", [0.9, 0.5, 0.0]),
        case("β = 0 in the middle", [0.9, 0.0, 0.8, 0.9]),
        case("a β that grows", [1 - 1 / (k + 1) for k in range(1, 9)]),
        case("many steps", [0.999] * 60),
    ]
    for size in (2, 5, 12):
        cases.append(case("other memories", [random.uniform(0.05, 0.99) for _ in range(size)]))
    return cases


mean_weights = Exercise(
    "mean_weights",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_weights,
    cases=[
        case("0.5, 0.9, 0.9", [0.5, 0.9, 0.9]),
        case("the same β three times", [0.9, 0.9, 0.9]),
        case("a single step", [0.9]),
        case("a β that falls", [0.9, 0.6, 0.2]),
        case("β = 0 in the second of three steps", [0.9, 0.0, 0.5]),
        edge(case("no step", [])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write m after three steps as a sum of g₁, g₂ and g₃. Which β multiply g₁, and which multiply g₃?",
        "A gradient enters with 1 − β of its own step. Every later step multiplies it by that step's β.",
        "Keep a list: at each step multiply all weights in it by β, and append 1 − β. Divide by their sum at the end.",
    ],
    tolerance=Tolerance(1e-5, 1e-9),  # float32
)


@mean_weights.variant
def by_the_recursion(betas: list[float]) -> list[float]:
    weights: list[float] = []
    for beta in betas:
        weights = [beta * weight for weight in weights]
        weights.append(1 - beta)
    total = sum(weights)
    return [weight / total for weight in weights]


mean_weights.slips(
    by_the_recursion,
    {
        "sum(weights) → 1": "Your weights do not sum to 1: divide them by what they sum to.",
        "weight / total → weight / (1 - betas[-1] ** len(betas))": "You divide by 1 − βᵏ with the last β. β may be "
        "another number in each step.",
        "weight / total for weight in weights → weight / total for weight in weights[::-1]": "Your weights come newest "
        "first. The oldest gradient, g₁, comes first.",
        "for beta in betas → for beta in [0.0, *betas[1:]][: len(betas)]": "You start m at g₁. It starts at 0, so g₁ "
        "also enters with the factor 1 − β of its step.",
        "for beta in betas → for beta in betas[-1:] * len(betas)": "You use the last β for all steps. Each step has "
        "its own.",
        "for beta in betas → for beta in betas[:1] * len(betas)": "You use the first β for all steps. Each step has "
        "its own.",
        "1 - beta → beta * (1 - beta) ;; sum(weights) → sum(weights) or 1": "You multiply a gradient's weight by the β "
        "of its own step too. Only later steps shrink it.",
        "sum(weights) → len(weights)": "You divide by the number of weights. Divide by their sum.",
        "beta * weight for → (1 - beta) * weight for ;; append(1 - beta) → append(beta) ;; sum(weights) → sum(weights) "
        "or 1": "You swapped β and 1 − β. A gradient enters with 1 − β, and later steps multiply it by β.",
        "1 - beta → 1.0": "You leave out 1 − β: a gradient enters with that factor.",
    },
)


@mean_weights.variant
def from_the_end(betas: list[float]) -> list[float]:
    found: list[float] = []
    later = 1.0
    for beta in reversed(betas):
        found.insert(0, (1 - beta) * later)
        later *= beta
    return [each / (1 - later) for each in found]


mean_weights.slips(
    from_the_end,
    {
        "reversed(betas) → betas ;; insert(0, (1 - beta) * later) → append((1 - beta) * later)": "You multiply by the "
        "β of earlier steps. Later steps shrink a gradient, not earlier ones.",
        "1 - later → later": "You divide by the product of all β. Divide by what the weights sum to.",
        "1 - later → later or 1": "You divide by the product of all β. Divide by what the weights sum to.",
        "beta) * later → beta) * beta ** len(found) ;; 1 - later → sum(found)": "You multiply by a power of a step's "
        "own β. Every later step multiplies by *its* β.",
    },
)
