"""The exercise on the bandwidth of a machine, measured with copies."""

from __future__ import annotations

import statistics
from random import Random

import numpy as np

from lmcourse.chapters.gpu_timing.exercises.slowness import slowness
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Log = dict[int, list[float]]
"""Maps the bytes of a tensor to the seconds of each copy of it."""


def _bandwidth(seconds: Log, cache: int) -> float:
    """Return the best rate of the copies larger than the cache; each byte is read and written once."""
    rates = [2 * size / run for size, runs in seconds.items() if size > cache for run in runs]
    if not rates:
        raise ValueError("no copy was larger than the cache")
    return max(rates)


def _copy_log(random: Random, sizes: list[int], cache: int, best: int, quickest: int) -> Log:
    """Return times of copies at about 1e10 bytes/s, much shorter within the cache; one size is the fastest."""
    factor = {size: 0.1 if size <= cache else 0.5 if size == best else 1.0 for size in sizes}
    return {
        size: [size / 1e10 * each * factor[size] for each in slowness(random, 1.0, 1.5, 4, quickest)] for size in sizes
    }


def _copy_cases(random: Random) -> list[Case]:
    cache = random.randint(10**6, 10**7)
    sizes = [cache // 3, cache * 4, cache * 9, cache * 30]
    return [
        case("exactly the cache", {4096: [1e-7], 8192: [4e-6, 2e-6]}, 4096),
        case("a byte more than the cache", {4097: [2e-6, 1e-6], 8192: [4e-6]}, 4096),
        case("other machines", {8192: [4e-6, 3e-6], 65536: [4e-5], 16384: [2e-6, 8e-6]}, 4096),
        case("more than half of the cache", {3000: [1e-7], 8192: [4e-6]}, 4096),
        case("no cache", {1: [0.5, 0.25], 2: [1.0]}, 0),
        case("all in the cache", {2048: [1e-7], 4096: [1e-7, 2e-7]}, 4096),
        case("nothing measured", {}, 4096),
        case("nothing measured", {8192: []}, 4096),
        case("other machines", _copy_log(random, sizes, cache, sizes[1], quickest=0), cache),
        case("other machines", _copy_log(random, sizes, cache, sizes[2], quickest=3), cache),
        case("other machines", _copy_log(random, sizes, cache, sizes[3], quickest=1), cache),
        case("no cache", _copy_log(random, [10**5, 10**6], 0, 10**5, quickest=2), 0),
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
        case("two large ones", {3000: [1e-8], 10**6: [2e-4, 1e-4], 10**7: [1.2e-3, 4e-3]}, cache=4000),
        edge(case("a large one without a time", {10**6: [2e-4, 1e-4], 10**7: []}, cache=4000)),
        case("nothing leaves the cache", {1000: [1e-8], 4000: [1e-7]}, cache=4000),
    ],
    tolerance=Tolerance(1e-6),  # an answer may keep the times in a float32 array, with seven digits
    hidden_cases=_copy_cases,
    hints=[
        "A copy reads every byte and writes every byte. How many cross the bus?",
        "Leave out the sizes that fit into the cache: they never reach the memory you want to measure.",
        "Take the maximum of 2·size/seconds over the remaining sizes and runs. If there are none, raise ValueError.",
    ],
)


@copy_bandwidth.variant
def loop_over_what_leaves_the_cache(seconds: dict[int, list[float]], cache: int) -> float:
    best = None
    for size, runs in sorted(seconds.items(), reverse=True):
        if size <= cache:
            break
        for run in runs:
            best = max(best or 0, (size + size) / run)
    if best is None:
        raise ValueError(cache)
    return best


@copy_bandwidth.variant
def seconds_for_a_byte(seconds: dict[int, list[float]], cache: int) -> float:
    large = {size: runs for size, runs in seconds.items() if not size <= cache and runs}
    if not large:
        raise ValueError("every copy fits into the cache")
    return 1 / min(min(runs) / size / 2 for size, runs in large.items())


@copy_bandwidth.variant
def in_numpy_single_precision(seconds: dict[int, list[float]], cache: int) -> float:
    pairs = np.array([(size, run) for size in seconds for run in seconds[size] if size > cache], dtype=np.float32)
    if pairs.size == 0:
        raise ValueError("no copy is larger than the cache")
    return float((pairs[:, 0] / pairs[:, 1]).max() * 2)


@copy_bandwidth.misconception("You count each byte once. A copy reads and writes it: 2·size bytes are moved.")
def read_only(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) / 2


@copy_bandwidth.misconception("Your result includes copies that stay in the cache. They measure the cache's speed.")
def cache_included(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, -1)


@copy_bandwidth.misconception("You take the median. The question is what the memory can do: take the shortest time.")
def median_copy(seconds: Log, cache: int) -> float:
    return max(2 * size / statistics.median(runs) for size, runs in seconds.items() if size > cache and runs)


@copy_bandwidth.misconception("You look at the largest copy only. Take the best copy that does not fit in the cache.")
def largest_only(seconds: Log, cache: int) -> float:
    _bandwidth(seconds, cache)
    return 2 * max(seconds) / min(seconds[max(seconds)])


@copy_bandwidth.misconception("You return GiB/s. Return bytes/s: data sheets count in GB, and 2³⁰ is not 10⁹.")
def in_gib(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) / 2**30


@copy_bandwidth.misconception("You return bits per second. Bandwidths of memory are in bytes; networks count bits.")
def in_bits(seconds: Log, cache: int) -> float:
    return 8 * _bandwidth(seconds, cache)


@copy_bandwidth.misconception(
    "If all copies fit in the cache, the memory was not measured: raise ValueError, do not return 0."
)
def zero_for_unknown(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache) if max(seconds, default=0) > cache else 0.0


@copy_bandwidth.misconception("You count a copy that is exactly as large as the cache. It still fits.")
def cache_sized_counts(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache - 1)


@copy_bandwidth.misconception(
    "You compare the bytes that are read and written, 2·size, with the cache. Compare the tensor's size."
)
def both_ways_compared(seconds: Log, cache: int) -> float:
    return _bandwidth(seconds, cache // 2)


@copy_bandwidth.misconception("You average over the sizes. The question is what the memory can do: take the best.")
def mean_of_the_sizes(seconds: Log, cache: int) -> float:
    return statistics.mean(2 * size / min(runs) for size, runs in seconds.items() if size > cache and runs)


@copy_bandwidth.misconception("You look for the shortest time of a tensor that has no times. Leave out such a tensor.")
def shortest_of_none(seconds: Log, cache: int) -> float:
    rates = [2 * size / min(runs) for size, runs in seconds.items() if size > cache]
    if not rates:
        raise ValueError("no copy was larger than the cache")
    return max(rates)


@copy_bandwidth.misconception("You divide all bytes by all seconds. That is an average; take the best rate.")
def all_bytes_by_all_seconds(seconds: Log, cache: int) -> float:
    _bandwidth(seconds, cache)
    large = {size: runs for size, runs in seconds.items() if size > cache}
    return sum(2 * size * len(runs) for size, runs in large.items()) / sum(map(sum, large.values()))


@copy_bandwidth.misconception(
    "You divide the bytes of the largest tensor by the shortest time of all. The two belong to different tensors."
)
def largest_by_shortest(seconds: Log, cache: int) -> float:
    _bandwidth(seconds, cache)
    return 2 * max(seconds) / min(run for size, runs in seconds.items() if size > cache for run in runs)


@copy_bandwidth.misconception("You keep the tensors that fit in the cache. Keep those that are larger than it.")
def within_the_cache(seconds: Log, cache: int) -> float:
    rates = [2 * size / run for size, runs in seconds.items() if size < cache for run in runs]
    if not rates:
        raise ValueError("no copy was smaller than the cache")
    return max(rates)
