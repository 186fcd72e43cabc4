"""The exercise on the peak of a machine, measured with matrix products."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import torch

from lmcourse.chapters.gpu_timing.exercises.slowness import slowness
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Log = dict[int, list[float]]
"""Maps a width to the seconds of each product of that width."""


def _peak(seconds: Log) -> float:
    """Return the best rate of all single runs."""
    rates = [2 * width**3 / run for width, runs in seconds.items() for run in runs]
    if not rates:
        raise ValueError("no runs were timed")
    return sorted(rates)[-1]


def _product_log(random: Random, widths: list[int], best: int, quickest: int) -> Log:
    """Return times of products at about 1e12 FLOP/s; one width is the fastest."""
    factor = {width: 0.5 if width == best else 1.0 for width in widths}
    return {
        width: [2 * width**3 / 1e12 * each * factor[width] for each in slowness(random, 1.1, 2.0, 5, quickest)]
        for width in widths
    }


def _peak_cases(random: Random) -> list[Case]:
    return [
        case("one width", {300: [0.5, 0.25, 1.0]}),
        case("one run", {3: [54.0]}),
        case("a width that was left out", {256: [], 512: [0.5, 0.25], 1024: []}),
        case("nothing measured", {64: [], 128: []}),
        case("other machines", {512: [0.4, 0.3], 128: [0.001, 0.002], 256: [0.3, 0.2]}),
        case("other machines", _product_log(random, [256, 512, 1024], 512, quickest=0)),
        case("other machines", _product_log(random, [256, 512, 1024], 1024, quickest=4)),
        case("other machines", _product_log(random, [256, 512, 1024], 256, quickest=2)),
        case("one width", _product_log(random, [random.randint(100, 999)], 0, quickest=3)),
        case("one run", {random.randint(100, 999): [random.uniform(0.1, 1.0)]}),
    ]


matmul_peak = Exercise(
    "matmul_peak",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_peak,
    cases=[
        case("one product of width 10", {10: [2.0]}),
        case("one of three runs was quiet", {100: [0.004, 0.002, 0.009]}),
        case("the largest is not the fastest", {100: [0.004, 0.003], 200: [0.008, 0.010], 400: [0.2, 0.25]}),
        case("neither the smallest nor the largest", {100: [1.0], 200: [7.0], 400: [64.0]}),
        edge(case("a width without a time", {10: [2.0], 20: []})),
        case("nothing was measured", {}),
        case("one width, and no time", {64: []}),
    ],
    tolerance=Tolerance(1e-6),  # an answer may keep the times in a float32 tensor, with seven digits
    hidden_cases=_peak_cases,
    hints=[
        "A product of two n × n matrices takes 2·n³ FLOPs (notebook 15). Divide by the seconds of one run.",
        "A disturbed run says nothing about what the machine can do. For each width take the shortest time.",
        "The peak is the highest of the rates of all widths. With no times at all, raise ValueError.",
    ],
)


@matmul_peak.variant
def in_single_precision(seconds: dict[int, list[float]]) -> float:
    rates = [2.0 * width**3 / torch.tensor(runs).min() for width, runs in seconds.items() if len(runs) > 0]
    return torch.stack(rates).max().item() if rates else float("nothing")


@matmul_peak.variant
def shortest_time_for_a_flop(seconds: dict[int, list[float]]) -> Fraction:
    runs = [(width, run) for width, times in seconds.items() for run in times]
    width, run = min(runs, key=lambda pair: pair[1] / pair[0] ** 3)
    return 1 / (Fraction(run) / (2 * width**3))


@matmul_peak.variant
def shortest_time_of_each_width(seconds: dict[int, list[float]]) -> float:
    rates = [2 * width**3 / min(runs) for width, runs in seconds.items() if runs]
    if not rates:
        raise ValueError("no runs were timed")
    return max(rates)


matmul_peak.slips(
    shortest_time_of_each_width,
    {
        "2 * width → width": "You count n³ operations. Each step of a product multiplies and adds: 2·n³.",
        "rates = → from statistics import median\n    rates = ;; min(runs) → median(runs)": "You divide by the median "
        "time. That is a typical run; a peak comes from the fastest one.",
        " if runs → ": "You look for the shortest time of a width that has no times. Leave out such a width.",
        "min(runs) → (sum(runs) / len(runs))": "You divide by the mean, so one disturbed run lowers the peak. Take "
        "the shortest time.",
        "seconds.items() if runs → sorted(seconds.items())[-1:]": "You look at the widest product only. You cannot "
        "know which width runs best before you measure.",
        "max(rates) → sum(2 * width**3 * len(runs) for width, runs in seconds.items()) / sum(map(sum, "
        "seconds.values()))": "You add up all FLOPs and all seconds. That is an average over all runs, not a peak.",
        "max(rates) → sum(rates) / len(rates)": "You average the rates of the widths. The peak is the highest of them.",
        "max(rates) → max(rates) / 1e12": "You return TFLOP/s. Return FLOP/s.",
        "width**3 → width**2": "You count 2·n² operations. Each of the n² numbers of the result is a sum of n "
        "products.",
        "2 * width**3 / min(runs) → (-min(runs), 2 * width**3 / min(runs)) ;; max(rates) → max(rates)[1]": "You take "
        "the width of the shortest time. The smallest product finishes first, but seldom has the best rate: compare "
        "FLOP/s, not seconds.",
        "min(runs) → max(runs)": "You divide by the longest time. It is the run that was disturbed most: take the "
        "shortest.",
        "max(rates) → 2 * max(seconds) ** 3 / min(min(runs) for runs in seconds.values() if runs)": "You divide the "
        "FLOPs of the widest product by the shortest time of all. The two belong to different products.",
        "return max(rates) → from statistics import median\n    return median(2 * width**3 / run for width, runs in "
        "seconds.items() for run in runs)": "You take the median of all rates. A peak is the highest rate.",
        "min(runs) → runs[0]": "You look at the first run of each width only. Any run may be the fastest.",
        "min(runs) → max(runs) ;; max(rates) → min(rates)": "You return the lowest rate. The peak is the highest.",
        "2 * width**3 → width**2 * (2 * width - 1)": "You count one addition less than multiplications for each "
        "number. The usual count, also in this course, is 2·n³.",
    },
)
