"""The exercise on the bandwidth of a machine, measured with copies."""

from __future__ import annotations

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


@copy_bandwidth.variant
def shortest_time_of_each_size(seconds: dict[int, list[float]], cache: int) -> float:
    rates = [2 * size / min(runs) for size, runs in seconds.items() if size > cache and runs]
    if not rates:
        raise ValueError("no copy was larger than the cache")
    return max(rates)


copy_bandwidth.slips(
    shortest_time_of_each_size,
    {
        "2 * size → size": "You count each byte once. A copy reads and writes it: 2·size bytes are moved.",
        "size > cache and → ": "Your result includes copies that stay in the cache. They measure the cache's speed.",
        "rates = → from statistics import median\n    rates = ;; min(runs) → median(runs)": "You take the median. The "
        "question is what the memory can do: take the shortest time.",
        "seconds.items() if size > cache and runs → sorted(seconds.items())[-1:] if size > cache": "You look at the "
        "largest copy only. Take the best copy that does not fit in the cache.",
        "max(rates) → max(rates) / 2**30": "You return GiB/s. Return bytes/s: data sheets count in GB, and 2³⁰ is not "
        "10⁹.",
        "max(rates) → 8 * max(rates)": "You return bits per second. Bandwidths of memory are in bytes; networks count "
        "bits.",
        'raise ValueError("no copy was larger than the cache") → return 0.0': "If all copies fit in the cache, the "
        "memory was not measured: raise ValueError, do not return 0.",
        "size > cache → size >= cache": "You count a copy that is exactly as large as the cache. It still fits.",
        "size > cache → 2 * size > cache": "You compare the bytes that are read and written, 2·size, with the cache. "
        "Compare the tensor's size.",
        "max(rates) → sum(rates) / len(rates)": "You average over the sizes. The question is what the memory can do: "
        "take the best.",
        " and runs → ": "You look for the shortest time of a tensor that has no times. Leave out such a tensor.",
        "return max(rates) → large = {size: runs for size, runs in seconds.items() if size > cache}\n    return sum(2 "
        "* size * len(runs) for size, runs in large.items()) / sum(map(sum, large.values()))": "You divide all bytes "
        "by all seconds. That is an average; take the best rate.",
        "max(rates) → 2 * max(seconds) / min(min(runs) for size, runs in seconds.items() if size > cache and "
        "runs)": "You divide the bytes of the largest tensor by the shortest time of all. The two belong to different "
        "tensors.",
        "size > cache → size < cache ;; copy was larger → copy was smaller": "You keep the tensors that fit in the "
        "cache. Keep those that are larger than it.",
    },
)
