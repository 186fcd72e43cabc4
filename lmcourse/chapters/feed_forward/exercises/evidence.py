"""The exercise on whether the difference between two scores is significant."""

from __future__ import annotations

import math
import statistics
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Scores = dict[str, float]


def _significance(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    noise = statistics.NormalDist(0, deviation / runs**0.5)
    # The difference of two independent means is normal as well; Python's own class adds the variances.
    difference = noise - statistics.NormalDist(0, noise.stdev)
    others = {name: score for name, score in scores.items() if name != baseline}
    return {name: (score - scores[baseline]) / difference.stdev for name, score in others.items()}


SHAZEER = {"ReLU": 83.80, "GLU": 84.20, "GEGLU": 84.12, "Bilinear": 83.79, "SwiGLU": 84.36, "ReGLU": 84.67}
"""Average GLUE scores, one run each (Shazeer, 2020, Table 2)."""


def _significance_cases(random: Random) -> list[Case]:
    def table(size: int) -> Scores:
        """Random scores, with the baseline in the middle: other scores are above and below it."""
        above = {f"model {index}": round(random.uniform(75, 90), 2) for index in range(size)}
        below = {f"model {index + size}": round(random.uniform(50, 65), 2) for index in range(size)}
        return {**above, "the baseline": 70.0, **below}

    return [
        case("the baseline is the last", {"new": 71.0, "newer": 72.0, "old": 71.5}, "old", 0.5),
        case("no difference", {"old": 70.0, "new": 70.0}, "old", 1.0),
        case("nothing to compare", {"old": 70.0}, "old", 1.0),
        case("several runs", {"old": 70.0, "new": 69.0}, "old", 0.8, runs=4),
        *(case("other tables", table(size), "the baseline", round(random.uniform(0.3, 2), 3)) for size in (1, 3)),
        case("several runs", table(2), "the baseline", 0.8, runs=random.randint(5, 20)),
    ]


glue_significance = Exercise(
    "glue_significance",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_significance,
    cases=[
        case("the gated layers against ReLU", SHAZEER, "ReLU", 0.235),  # the deviation: Raffel et al., 2020
        case("one point better, noise of one point", {"old": 70.0, "new": 71.0}, "old", 1.0),
        case("the same, with eight runs of each", {"new": 71.0, "old": 70.0}, "old", 1.0, runs=8),
    ],
    hidden_cases=_significance_cases,
    hints=[
        "A mean of n runs has the standard deviation s / √n. What is the standard deviation of the difference of two "
        "such means?",
        "Variances of independent numbers add up, even for a difference: s²/n + s²/n.",
        "Its root is the noise of the difference. Divide score − baseline by it, for every name but the baseline's.",
    ],
    # float32 gives scores near 80 to 4e-6, and z divides their difference by 0.1 or more
    tolerance=Tolerance(1e-6, 1e-4),
)


@glue_significance.variant
def in_a_loop(scores: dict[str, float], baseline: str, deviation: float, runs: int = 1) -> dict[str, float]:
    found = {}
    for name in scores:
        if name == baseline:
            continue
        variance = deviation * deviation / runs
        found[name] = (scores[name] - scores[baseline]) / math.sqrt(variance + variance)
    return found


glue_significance.slips(
    in_a_loop,
    {
        "variance + variance → variance": "You divide by the noise of one score. The baseline is just as noisy: the "
        "difference of two scores has √2 times the noise.",
        "math.sqrt(variance + variance) → (2 * math.sqrt(variance))": "You add the two deviations, which gives 2·s. "
        "Variances add, and give √2·s.",
        " / runs → ": "The number of runs is not used: a mean of n runs is √n times less noisy.",
        "math.sqrt(variance + variance) → (variance + variance)": "You divide by the variance, 2s²/n. Take its root: a "
        "difference is measured in standard deviations.",
        "/ math.sqrt(variance + variance) → / deviation * math.sqrt(2 / runs)": "You multiply by √(2/n) after "
        "dividing by s. The noise is s · √(2/n): divide by all of it.",
        "variance = deviation * deviation / runs → variance = statistics.variance(scores.values()) / runs": "You take "
        "the spread of these scores as noise. The noise of one run is given: `deviation`.",
        "variance + variance → variance + deviation**2": "You average only one of the two over the runs. The baseline "
        "is a mean of n runs, too.",
        "deviation * deviation / runs → deviation / runs": "You take the deviation for the variance. The variance is "
        "s², so the noise of a mean is s / √n.",
        "/ runs → / max(runs - 1, 1)": "You divide by n − 1. That is for estimating a deviation; here s is known, and "
        "a mean of n runs has s / √n.",
        "scores[name] - scores[baseline] → scores[name] - statistics.mean(scores.values())": "You subtract the mean "
        "of all scores. Each is compared with the baseline's.",
        "/ runs → / runs**2": "You divide the noise by n. The noise of a mean falls only with √n.",
        "= (scores[name] → = abs(scores[name]": "You dropped the sign. A variant can be worse than the baseline.",
        " / math.sqrt(variance + variance) → ": "Those are the differences in points. Measure them in units of their "
        "noise.",
        "        if name == baseline:\n            continue\n → ": "The baseline is compared with itself. Leave it "
        "out.",
        "math.sqrt(variance + variance) → (deviation * 2 / runs)": "You leave out the root. Deviations shrink with √n, "
        "so the factor is √(2 / n).",
        "/ runs → * runs": "With more runs your noise grows. A mean of n runs has the deviation s / √n.",
        "scores[name] - scores[baseline] → scores[baseline] - scores[name]": "Your signs are reversed: a score above "
        "the baseline's is positive.",
    },
)
