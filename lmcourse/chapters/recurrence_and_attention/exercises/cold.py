"""The exercise on the temperature at which the best match gets a given weight."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _newton(scores: Tensor, share: float) -> float:
    """Find the inverse temperature by Newton's method: the sum of the quotients of weights is convex in it."""
    top = max(scores.tolist())
    gaps: list[float] = [top - score for score in scores.tolist()]
    if not 1 / len(gaps) < share < 1 / gaps.count(0.0):
        raise ValueError(f"no temperature gives the best of these {len(gaps)} scores a weight of {share}")
    scale, cold = max(gaps), 0.0
    for _ in range(200):
        raised = [math.exp(-gap / scale * cold) for gap in gaps]
        slope = math.fsum(gap / scale * each for gap, each in zip(gaps, raised, strict=True))
        cold += (math.fsum(raised) - 1 / share) / slope
    return scale / cold


def _scores(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def _hidden(random: Random) -> list[Case]:
    four = normal64(Random(3), 4)
    cases = [
        case("scores in thousands", 1000 * four, 0.6),
        case("scores in millionths", 1e-6 * four, 0.6),
        case("far from zero", four + 900, 0.45),
        case("nearly certain", four, 0.999),
        case("nearly equal", four, 0.2501),
        case("two equal matches", _scores(2, -1, 2, 0.5), 0.4),
        case("three equal matches", _scores(1, 1, 1, 0), 0.3),
        case("more than equal matches can have", _scores(2, -1, 2, 0.5), 0.5),
        case("less than an equal share", four, 0.25),
        case("all of the weight", four, 1.0),
        *(case("one score", _scores(3), share) for share in (0.5, 1.0)),
        case("all scores are equal", _scores(1, 1, 1), 1 / 3),
        case("single precision", four.float(), 0.7),
    ]
    for n in (3, 5, 12):
        cases.append(case("other scores", 3 * normal64(random, n), random.uniform(1.5 / n, 0.95)))
    return cases


temperature_for = Exercise(
    "temperature_for",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_newton,
    cases=[
        case("two scores", _scores(2, 0), 0.75),
        case("three scores", _scores(2, 0, -2), 0.6),
        case("the best comes last", _scores(-1, 0.5, 0, 3), 0.8),
        edge(case("two equal matches", _scores(1, -1, 1, 0, 0.5), 0.45)),
        case("scores of hundreds", _scores(800, 500, -900), 0.9),
        case("scores of thousandths", _scores(0.003, 0.001, 0.002), 0.7),
        edge(case("an equal share", _scores(2, 0, -2, 1), 0.25)),
        edge(case("as much as two equal matches can have at most", _scores(1, -1, 1, 0, 0.5), 0.5)),
        case("two scores that nearly match", _scores(1, 1 - 1e-6, 0), 0.6),
        edge(case("more than two equal matches can have", _scores(1, -1, 1, 0, 0.5), 0.6)),
    ],
    hidden_cases=_hidden,
    hints=[
        "The colder, the larger the weight of the best match. What is its limit as T goes to infinity, and as T goes "
        "to 0? Only weights in between are possible.",
        "The weight only rises as T falls, so use bisection: try a temperature in the middle. Is it too cold, or too "
        "warm?",
        "With gaps = scores.max() − scores, the weight is 1 / Σ exp(−gap / T): nothing overflows, and only the gaps "
        "count. Bisect the exponent, say between 10⁻⁹ and 10⁹, because scores may have any size.",
    ],
    tolerance=Tolerance(1e-5),
)


for _ends in ("(-41.0, 40.0)", "(-39.0, 40.0)", "(-40.0, 41.0)", "(-40.0, 39.0)"):
    temperature_for.equivalent_mutant(
        f"low, high = (-40.0, 40.0) → low, high = {_ends}", "Every temperature that is asked for lies between the ends."
    )
for _steps in ("list(range(80))[1:]", "list(range(80))[:-1]", "range(81)", "range(79)"):
    temperature_for.equivalent_mutant(
        f"for _ in range(80): → for _ in {_steps}:", "A step more or less: all digits are right long before."
    )
temperature_for.equivalent_mutant(
    "if 1 / (-gaps / math.exp(middle)).exp().sum() > share: → if 1 / (-gaps / math.exp(middle)).exp().sum() >= share:",
    "If the middle is right, it stays at an end of the interval.",
)


@temperature_for.variant
def by_bisection(scores: Tensor, share: float) -> float:
    scores = scores.double()
    ties = int((scores == scores.max()).sum())
    if not 1 / len(scores) < share < 1 / ties:
        raise ValueError("no temperature gives this weight")
    cold, hot = 1e-9, 1e9
    for _ in range(90):
        middle = math.sqrt(cold * hot)
        weights = ((scores - scores.max()) / middle).softmax(dim=0)
        if weights.max() > share:
            cold = middle
        else:
            hot = middle
    return cold


temperature_for.slips(
    by_bisection,
    {
        "return cold → return 1 / cold": "You return 1/T, by which scores are multiplied. A temperature divides them.",
        "1 / ties → 1 ;; weights.max() → weights[scores == scores.max()].sum()": "You give `share` to all equal "
        "matches together. Each of them has the weight `share`.",
        "weights.max() → weights[0]": "You take the first score for the best. Scores come in any order.",
        "return cold → return float(scores.unique()[-2:].diff()) / math.log(share / (1 - share))": "You look at the "
        "best two only. All other scores have weights, too.",
        "weights.max() → weights.max() / (1 - weights.max())": "The best match itself is missing from the sum: all "
        "weights, including its own, sum to one.",
        "weights.max() → 1 - weights.min()": "Where it can, your temperature gives the *worst* match the weight 1 − "
        "share. The best match should have the weight `share`.",
        "return cold → return round(cold, 2)": "You round to two decimals. Scores may be thousandths: give five "
        "digits.",
        "1e9 → 100": "You search up to 100. Scores of hundreds or thousands need hotter temperatures.",
        "1e-9 → 0.001": "You search only from 0.001. Scores of thousandths or millionths need colder temperatures.",
        "((scores - scores.max()) / middle).softmax(dim=0) → (scores / middle).exp() "
        "/ (scores / middle).exp().sum()": "The exponential of a large score is infinite, and ∞/∞ is NaN: every "
        "comparison with it is False. Subtract the largest score first.",
        'if not → if ties > 1:\n        raise ValueError("no temperature separates two equal '
        'best scores")\n    if not': "You reject every weight if there are equal matches. Two of them can have up to ½ "
        "each.",
        "1 / ties → 1": "You reject weights up to 1/n. Reject weights that are too large as well: two equal matches "
        "have at most ½ each.",
        "not 1 / len(scores) < share < 1 / ties → share >= 1 / ties": "You reject weights that are too large. Reject "
        "1/n or less as well: for 1/n, T would be infinite, and for less there is none.",
    },
)
