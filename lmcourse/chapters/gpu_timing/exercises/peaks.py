"""Exercises on measuring what a machine can do at best: products and copies."""

from __future__ import annotations

import statistics
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Log = dict[int, list[float]]
"""From a size to the seconds of each run of that size."""

# matmul_peak -----------------------------------------------------------------------------------------------------


def _peak(seconds: Log) -> float:
    """Every single run has its rate; the best of them all."""
    if not seconds or not all(seconds.values()):
        raise ValueError("there is nothing to take the best of")
    return max(2 * width**3 / run for width, runs in seconds.items() for run in runs)


def _product_log(random: Random, widths: list[int], best: int) -> Log:
    """Times at about 1e12 FLOP/s, where one width does better than the others."""
    return {
        width: [2 * width**3 / 1e12 * random.uniform(1.1, 2.0) * (0.5 if width == best else 1.0) for _ in range(5)]
        for width in widths
    }


def _peak_cases(random: Random) -> list[Case]:
    return [
        *(case("other machines", _product_log(random, [256, 512, 1024], best)) for best in (512, 1024, 256)),
        case("one width", _product_log(random, [random.randint(100, 999)], 0)),
        case("one run", {random.randint(100, 999): [random.uniform(0.1, 1.0)]}),
        case("nothing measured", {random.randint(100, 999): []}),
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
        case("nothing was measured", {}),
    ],
    hidden_cases=_peak_cases,
    hints=[
        "A product of two n × n matrices takes 2·n³ FLOPs (notebook 15). Divide by the seconds of one run.",
        "A disturbed run says nothing of what the machine can do. Of each width take the shortest time.",
        "The peak is the highest of the rates of all widths. With no times at all, raise ValueError.",
    ],
)


@matmul_peak.misconception("You count n³ operations. Each step of a product multiplies and adds: 2·n³.")
def multiplications_only(seconds: Log) -> float:
    return _peak(seconds) / 2


@matmul_peak.misconception("You divide by the median. It tells how long a product takes; a peak is what can be done.")
def median_time(seconds: Log) -> float:
    _peak(seconds)
    return max(2 * width**3 / statistics.median(runs) for width, runs in seconds.items())


@matmul_peak.misconception("You divide by the mean, so one disturbed run lowers the peak. Take the shortest time.")
def mean_time(seconds: Log) -> float:
    _peak(seconds)
    return max(2 * width**3 / statistics.mean(runs) for width, runs in seconds.items())


@matmul_peak.misconception("You look at the widest product only. Which width runs best is not known beforehand.")
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
    return statistics.mean(2 * width**3 / min(runs) for width, runs in seconds.items())


@matmul_peak.misconception("These are TFLOP/s. Return FLOP/s, so that nothing has to be guessed.")
def in_tera(seconds: Log) -> float:
    return _peak(seconds) / 1e12


@matmul_peak.misconception("You count 2·n² operations. Each of the n² numbers of the result is a sum of n products.")
def squares(seconds: Log) -> float:
    _peak(seconds)
    return max(2 * width**2 / run for width, runs in seconds.items() for run in runs)


# copy_bandwidth --------------------------------------------------------------------------------------------------


def _bandwidth(seconds: Log, cache: int) -> float:
    """Of the copies that leave the cache, the best rate; each byte crosses twice."""
    rates = [2 * size / run for size, runs in seconds.items() if size > cache for run in runs]
    if not rates:
        raise ValueError("no copy was larger than the cache")
    return max(rates)


def _copy_log(random: Random, sizes: list[int], cache: int) -> Log:
    return {
        size: [size / 1e10 * random.uniform(1.0, 1.5) * (0.1 if size <= cache else 1.0) for _ in range(4)]
        for size in sizes
    }


def _copy_cases(random: Random) -> list[Case]:
    cache = random.randint(10**6, 10**7)
    sizes = [cache // 3, cache * 4, cache * 9, cache * 30]
    return [
        *(case("other machines", _copy_log(random, sizes, cache), cache) for _ in range(3)),
        case("exactly the cache", _copy_log(random, [cache, cache * 5], cache), cache),
        case("no cache", _copy_log(random, [10**5, 10**6], 0), 0),
        case("all in the cache", _copy_log(random, [cache // 2, cache], cache), cache),
    ]


copy_bandwidth = Exercise(
    "copy_bandwidth",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_bandwidth,
    cases=[
        case("a copy of 1 GB in 0.1 s", {10**9: [0.1]}, cache=10**6),
        case("small copies stay in the cache", {1000: [1e-8, 2e-8], 10**6: [2e-4, 1e-4, 4e-4]}, cache=4000),
        case("two large ones", {1000: [1e-8], 10**6: [2e-4, 1e-4], 10**7: [1.2e-3, 4e-3]}, cache=4000),
        case("nothing leaves the cache", {1000: [1e-8], 4000: [1e-7]}, cache=4000),
    ],
    hidden_cases=_copy_cases,
    hints=[
        "A copy reads every byte and writes every byte. How many cross the bus?",
        "Leave out the sizes that fit into the cache: they never get to the memory you want to measure.",
        "max over the remaining sizes and runs of 2·size/seconds; without any, raise ValueError.",
    ],
)


@copy_bandwidth.misconception("You count each byte once. A copy reads it and writes it: 2·size bytes cross.")
def read_only(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) / 2


@copy_bandwidth.misconception("Copies that stay in the cache are in your result. That is the cache's speed.")
def cache_included(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, -1)


@copy_bandwidth.misconception("You take the median. The question is what the memory can do: take the shortest time.")
def median_copy(seconds: Log, cache: int) -> float:
    _bandwidth(seconds, cache)
    return max(2 * size / statistics.median(runs) for size, runs in seconds.items() if size > cache)


@copy_bandwidth.misconception("You look at the largest copy only. Take the best of all that leave the cache.")
def largest_only(seconds: Log, cache: int) -> float:
    _bandwidth(seconds, cache)
    return 2 * max(seconds) / min(seconds[max(seconds)])


@copy_bandwidth.misconception("These are GiB/s. Return bytes/s: data sheets count in GB, and 2³⁰ is not 10⁹.")
def in_gib(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) / 2**30


@copy_bandwidth.misconception("These are bits. Bandwidths of memory are in bytes; networks count bits.")
def in_bits(seconds: Log, cache: int) -> float:
    return 8 * _bandwidth(seconds, cache)


@copy_bandwidth.misconception("Where no copy leaves the cache nothing is known: raise ValueError, do not return 0.")
def zero_for_unknown(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) if max(seconds) > cache else 0.0


@copy_bandwidth.misconception("A copy that is exactly as large as the cache counts in yours; it still fits.")
def cache_sized_counts(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache - 1)
