"""The exercise on whether a difference between two scores means anything."""

from __future__ import annotations

import statistics
from random import Random

from lmcourse.exercises.cases import Case, case
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

RUN_DEVIATION = 0.235
"""Standard deviation of that average over runs of one model (Raffel et al., 2020)."""


def _significance_cases(random: Random) -> list[Case]:
    def table(size: int) -> Scores:
        return {f"model {index}": round(random.uniform(60, 90), 2) for index in range(size)}

    cases = [case("other tables", table(size), "model 0", round(random.uniform(0.1, 2), 3)) for size in (2, 5)]
    cases += [case("the baseline is not the first", table(4), "model 2", 0.5)]
    return cases + [case("several runs", table(3), "model 1", 0.8, runs=runs) for runs in (2, random.randint(4, 20))]


glue_significance = Exercise(
    "glue_significance",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_significance,
    cases=[
        case("the gated layers against ReLU", SHAZEER, "ReLU", RUN_DEVIATION),
        case("one point better, noise of one point", {"old": 70.0, "new": 71.0}, "old", 1.0),
        case("the same, with eight runs of each", {"old": 70.0, "new": 71.0}, "old", 1.0, runs=8),
    ],
    hidden_cases=_significance_cases,
    hints=[
        "A mean of n runs has the standard deviation s / √n. What is that of the difference of two such means?",
        "Variances of independent numbers add, also in a difference: s²/n + s²/n.",
        "(score − baseline) / (s · √(2 / n)), for every name but the baseline's.",
    ],
    forbid=["torch", "numpy", "statistics"],
)


@glue_significance.misconception(
    "You divide by the noise of one score. The baseline is as noisy: the difference of two has √2 times as much."
)
def baseline_without_noise(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return {name: z * 2**0.5 for name, z in _significance(scores, baseline, deviation, runs).items()}


@glue_significance.misconception("You divide by 2·s: standard deviations do not add, variances do.")
def deviations_added(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return {name: z / 2**0.5 for name, z in _significance(scores, baseline, deviation, runs).items()}


@glue_significance.misconception("The number of runs is not used: a mean of n runs is √n times less noisy.")
def runs_ignored(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return _significance(scores, baseline, deviation)


@glue_significance.misconception("You divide the noise by n. The noise of a mean falls with √n only.")
def noise_over_n(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return _significance(scores, baseline, deviation, runs**2)


@glue_significance.misconception("You dropped the sign. A variant can be worse than the baseline.")
def sign_dropped(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return {name: abs(z) for name, z in _significance(scores, baseline, deviation, runs).items()}


@glue_significance.misconception("Those are the differences in points. Measure them in units of their noise.")
def plain_differences(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return {name: score - scores[baseline] for name, score in scores.items() if name != baseline}


@glue_significance.misconception("The baseline is compared with itself. Leave it out.")
def baseline_included(scores: Scores, baseline: str, deviation: float, runs: int = 1) -> Scores:
    return {baseline: 0.0, **_significance(scores, baseline, deviation, runs)}
