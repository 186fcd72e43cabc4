"""The exercise on the peak of a machine, measured with matrix products."""

from __future__ import annotations

import statistics
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
        case("nothing measured", {64: []}),
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
        edge(case("a width without a time", {10: [2.0], 20: []})),
        case("nothing was measured", {}),
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
def loop_with_the_best_so_far(seconds: dict[int, list[float]]) -> float:
    best = 0.0
    for width in seconds:
        for run in seconds[width]:
            rate = 2 * width * width * width / run
            if rate > best:
                best = rate
    if best == 0.0:
        raise ValueError("nothing")
    return best


@matmul_peak.variant
def in_single_precision(seconds: dict[int, list[float]]) -> float:
    rates = [2.0 * width**3 / torch.tensor(runs).min() for width, runs in seconds.items() if len(runs) > 0]
    return torch.stack(rates).max().item() if rates else float("nothing")


@matmul_peak.variant
def shortest_time_for_a_flop(seconds: dict[int, list[float]]) -> Fraction:
    runs = [(width, run) for width, times in seconds.items() for run in times]
    width, run = min(runs, key=lambda pair: pair[1] / pair[0] ** 3)
    return 1 / (Fraction(run) / (2 * width**3))


@matmul_peak.misconception("You count n³ operations. Each step of a product multiplies and adds: 2·n³.")
def multiplications_only(seconds: Log) -> float:
    return _peak(seconds) / 2


@matmul_peak.misconception("You divide by the median time. That is a typical run; a peak comes from the fastest one.")
def median_time(seconds: Log) -> float:
    return max(2 * width**3 / statistics.median(runs) for width, runs in seconds.items() if runs)


@matmul_peak.misconception("You look for the shortest time of a width that has no times. Leave out such a width.")
def shortest_of_none(seconds: Log) -> float:
    return max(2 * width**3 / min(runs) for width, runs in seconds.items())


@matmul_peak.misconception("You divide by the mean, so one disturbed run lowers the peak. Take the shortest time.")
def mean_time(seconds: Log) -> float:
    return max(2 * width**3 / statistics.mean(runs) for width, runs in seconds.items() if runs)


@matmul_peak.misconception(
    "You look at the widest product only. You cannot know which width runs best before you measure."
)
def widest_only(seconds: Log) -> float:
    _peak(seconds)
    return 2 * max(seconds) ** 3 / min(seconds[max(seconds)])


@matmul_peak.misconception("You add up all FLOPs and all seconds. That is an average over all runs, not a peak.")
def averaged_over_all(seconds: Log) -> float:
    _peak(seconds)
    return sum(2 * width**3 * len(runs) for width, runs in seconds.items()) / sum(map(sum, seconds.values()))


@matmul_peak.misconception("You average the rates of the widths. The peak is the highest of them.")
def mean_of_widths(seconds: Log) -> float:
    _peak(seconds)
    return statistics.mean(2 * width**3 / min(runs) for width, runs in seconds.items() if runs)


@matmul_peak.misconception("You return TFLOP/s. Return FLOP/s.")
def in_tera(seconds: Log) -> float:
    return _peak(seconds) / 1e12


@matmul_peak.misconception("You count 2·n² operations. Each of the n² numbers of the result is a sum of n products.")
def squares(seconds: Log) -> float:
    _peak(seconds)
    return max(2 * width**2 / run for width, runs in seconds.items() for run in runs)


@matmul_peak.misconception(
    "You take the width of the shortest time. The smallest product finishes first, but seldom has the best rate: "
    "compare FLOP/s, not seconds."
)
def rate_of_the_shortest_run(seconds: Log) -> float:
    _peak(seconds)
    run, width = min((run, width) for width, runs in seconds.items() for run in runs)
    return 2 * width**3 / run


@matmul_peak.misconception("You divide by the longest time. It is the run that was disturbed most: take the shortest.")
def longest_time(seconds: Log) -> float:
    _peak(seconds)
    return max(2 * width**3 / max(runs) for width, runs in seconds.items() if runs)


@matmul_peak.misconception(
    "You divide the FLOPs of the widest product by the shortest time of all. The two belong to different products."
)
def widest_by_shortest(seconds: Log) -> float:
    _peak(seconds)
    return 2 * max(seconds) ** 3 / min(run for runs in seconds.values() for run in runs)


@matmul_peak.misconception("You take the median of all rates. A peak is the highest rate.")
def median_rate(seconds: Log) -> float:
    return statistics.median(2 * width**3 / run for width, runs in seconds.items() for run in runs)


@matmul_peak.misconception("You look at the first run of each width only. Any run may be the fastest.")
def first_run(seconds: Log) -> float:
    return max(2 * width**3 / runs[0] for width, runs in seconds.items() if runs)


@matmul_peak.misconception("You return the lowest rate. The peak is the highest.")
def lowest_rate(seconds: Log) -> float:
    return min(2 * width**3 / run for width, runs in seconds.items() for run in runs)


@matmul_peak.misconception(
    "You count one addition less than multiplications for each number. The usual count, also in this course, is 2·n³."
)
def one_addition_less(seconds: Log) -> float:
    return max(width**2 * (2 * width - 1) / run for width, runs in seconds.items() for run in runs)
