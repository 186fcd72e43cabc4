"""The exercise on the temperature at which the best match gets a given weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
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
        case("far from zero", four - 900, 0.45),
        case("nearly certain", four, 0.999),
        case("nearly equal", four, 0.2501),
        case("two equal matches", _scores(2, -1, 2, 0.5), 0.4),
        case("three equal matches", _scores(1, 1, 1, 0), 0.3),
        case("more than equal matches can have", _scores(2, -1, 2, 0.5), 0.5),
        case("more than equal matches can have", _scores(1, 1, 1, 0), 0.4),
        case("less than an equal share", four, 0.25),
        case("less than an equal share", four, 0.1),
        case("all of the weight", four, 1.0),
        case("one score", _scores(3), 0.5),
        case("one score", _scores(3), 1.0),
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


def _by_halving(weight: Callable[[float], float], share: float) -> float:
    """Return the temperature at which a weight that decreases with the temperature equals `share`."""
    low, high = math.log(1e-9), math.log(1e9)  # the ends that the last hint proposes
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if weight(math.exp(middle)) > share else (low, middle)
    return math.exp(low)


def _refuse(scores: Tensor, share: float) -> None:
    if not 1 / len(scores) < share < 1 / int((scores == scores.max()).sum()):
        raise ValueError("no temperature gives this weight")


def _weights(scores: Tensor, temperature: float) -> Tensor:
    return ((scores.double() - scores.double().max()) / temperature).softmax(dim=0)


@temperature_for.misconception("You return 1/T, by which scores are multiplied. A temperature divides them.")
def inverse(scores: Tensor, share: float) -> float:
    return 1 / _newton(scores, share)


@temperature_for.misconception("You give `share` to all equal matches together. Each of them has the weight `share`.")
def together(scores: Tensor, share: float) -> float:
    best = scores == scores.max()
    if not 1 / len(scores) < share < 1:
        raise ValueError("no temperature gives this weight")
    return _by_halving(lambda t: float(_weights(scores, t)[best].sum()), share)


@temperature_for.misconception("You take the first score for the best. Scores come in any order.")
def first_is_best(scores: Tensor, share: float) -> float:
    _refuse(scores, share)
    return _by_halving(lambda t: float(_weights(scores, t)[0]), share)


@temperature_for.misconception("You look at the best two only. All other scores have weights, too.")
def two_best(scores: Tensor, share: float) -> float:
    _refuse(scores, share)
    best, second = sorted(set(scores.tolist()), reverse=True)[:2]
    return (best - second) / math.log(share / (1 - share)) if share != 0.5 else math.inf


@temperature_for.misconception(
    "The best match itself is missing from the sum: all weights, including its own, sum to one."
)
def without_itself(scores: Tensor, share: float) -> float:
    _refuse(scores, share)
    gaps = (scores.max() - scores).double()
    return _by_halving(lambda t: 1 / max(float((-gaps / t).exp().sum()) - 1, 1e-300), share)


@temperature_for.misconception(
    "Where it can, your temperature gives the *worst* match the weight 1 − share. The best match should have the "
    "weight `share`."
)
def of_the_worst(scores: Tensor, share: float) -> float:
    _refuse(scores, share)
    return _by_halving(lambda t: 1 - float(_weights(scores, t).min()), share)


@temperature_for.misconception("You round to two decimals. Scores may be thousandths: give five digits.")
def two_digits(scores: Tensor, share: float) -> float:
    return round(_newton(scores, share), 2)


@temperature_for.misconception("You search up to 100. Scores of hundreds or thousands need hotter temperatures.")
def ends_at_a_hundred(scores: Tensor, share: float) -> float:
    return min(_newton(scores, share), 100.0)


@temperature_for.misconception("You search up to 10. Scores of hundreds or thousands need hotter temperatures.")
def ends_at_ten(scores: Tensor, share: float) -> float:
    return min(_newton(scores, share), 10.0)


@temperature_for.misconception("You search only from 0.01. Scores of thousandths need colder temperatures.")
def begins_at_a_hundredth(scores: Tensor, share: float) -> float:
    return max(_newton(scores, share), 0.01)


@temperature_for.misconception(
    "You search only from 0.001. Scores of thousandths or millionths need colder temperatures."
)
def begins_at_a_thousandth(scores: Tensor, share: float) -> float:
    return max(_newton(scores, share), 0.001)


@temperature_for.misconception(
    "The exponential of a large score is infinite, and ∞/∞ is NaN: every comparison with it is False. Subtract the "
    "largest score first."
)
def not_a_number(scores: Tensor, share: float) -> float:
    _refuse(scores, share)

    def weight(temperature: float) -> float:
        raised = (scores.double() / temperature).exp()
        return float(raised.max() / raised.sum())

    return _by_halving(weight, share)


@temperature_for.misconception("e^(score/T) overflows where score/T is above 709. Subtract the largest score first.")
def overflows(scores: Tensor, share: float) -> float:
    _refuse(scores, share)
    return _by_halving(
        lambda t: math.exp(float(scores.max()) / t) / sum(math.exp(s / t) for s in scores.tolist()), share
    )


@temperature_for.misconception("You reject every weight if there are equal matches. Two of them can have up to ½ each.")
def refuses_equal_matches(scores: Tensor, share: float) -> float:
    if int((scores == scores.max()).sum()) > 1:
        raise ValueError("no temperature separates two equal best scores")
    return _newton(scores, share)


@temperature_for.misconception(
    "You reject weights up to 1/n. Reject weights that are too large as well: two equal matches have at most ½ each."
)
def no_upper_end(scores: Tensor, share: float) -> float:
    if not 1 / len(scores) < share < 1:
        raise ValueError("no temperature gives this weight")
    return _by_halving(lambda t: float(_weights(scores, t).max()), share)


@temperature_for.misconception(
    "You reject weights that are too large. Reject 1/n or less as well: for 1/n, T would be infinite, and for less "
    "there is none."
)
def no_lower_end(scores: Tensor, share: float) -> float:
    if share >= 1 / int((scores == scores.max()).sum()):
        raise ValueError("no temperature gives this weight")
    return _by_halving(lambda t: float(_weights(scores, t).max()), share)


@temperature_for.variant
def halving_the_cold(scores: Tensor, share: float) -> float:
    gaps = (scores.max() - scores).double().numpy()
    if share <= 1 / len(gaps) or share >= 1 / np.count_nonzero(gaps == 0):
        raise ValueError("no temperature gives this weight")
    low, high = 0.0, 1.0
    while 1 / np.exp(-high * gaps).sum() < share:
        high *= 2
    while high - low > 1e-12 * high:
        cold = (low + high) / 2
        if 1 / np.exp(-cold * gaps).sum() < share:
            low = cold
        else:
            high = cold
    return 2 / (low + high)


@temperature_for.variant
def with_softmax(scores: Tensor, share: float) -> float:
    scores = scores.double()
    n, ties = len(scores), (scores == scores.max()).sum().item()
    if share * n <= 1 or share * ties >= 1:
        raise ValueError(share)
    cold, hot = 1e-12, 1e12
    for _ in range(300):
        t = math.sqrt(cold * hot)
        if torch.softmax((scores - scores.max()) / t, dim=0).max() > share:
            cold = t
        else:
            hot = t
    return cold


@temperature_for.variant
def by_newton(scores: Tensor, share: float) -> Tensor:
    gaps = scores.max() - scores.to(torch.float64)
    if not (1 / len(gaps) < share and share * (gaps == 0).sum() < 1):
        raise ValueError("no temperature gives this weight")
    gaps = gaps / gaps.max()
    cold = torch.zeros((), dtype=torch.float64)
    for _ in range(200):
        raised = torch.exp(-cold * gaps)
        cold = cold + (raised.sum() - 1 / share) / (gaps * raised).sum()
    return (scores.max() - scores.min()).double() / cold
