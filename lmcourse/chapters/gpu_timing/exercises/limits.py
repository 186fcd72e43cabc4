"""The exercise on what a machine can do at best: its peak, its bandwidth and its ridge, from measured times."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Log = dict[int, list[float]]
"""Maps the width of a product, or the bytes of a copied tensor, to the seconds of each run."""

LIMITS = ("peak", "bandwidth", "ridge")


def _limits(products: Log, copies: Log, cache: int) -> dict[str, float]:
    peak = sorted(2 * width**3 / run for width, runs in products.items() for run in runs)
    bandwidth = sorted(2 * size / run for size, runs in copies.items() for run in runs if size > cache)
    if not (peak and bandwidth):
        raise ValueError("nothing was measured")
    return {"peak": peak[-1], "bandwidth": bandwidth[-1], "ridge": peak[-1] / bandwidth[-1]}


def _each(name: str, products: Log, copies: Log, cache: int) -> list[Case]:
    """A case for each limit, so that each earns points alone."""
    call = f"machine_limits({products!r}, {copies!r}, cache={cache})"
    return [script(f"{name}: {limit}", f'{call}["{limit}"]') for limit in LIMITS]


def _slowed(random: Random, best: float, runs: int = 4) -> list[float]:
    """Times of runs, none of which is faster than `best`, and one of which takes just that."""
    times = [best, *(best * random.uniform(1.1, 2.0) for _ in range(runs - 1))]
    random.shuffle(times)
    return times


def _cases(random: Random) -> list[Case]:
    def machine(fastest: int) -> tuple[Log, Log, int]:
        """Rates of about 1e12 FLOP/s and 1e10 bytes/s. The `fastest` of three sizes is the best; the cache is faster."""
        cache = random.randint(10**6, 10**7)
        products = {
            n: _slowed(random, 2 * n**3 / (2e12 if i == fastest else 1e12)) for i, n in enumerate((256, 512, 999))
        }
        copies = {
            cache * k: _slowed(random, cache * k / (2e10 if i == fastest else 1e10)) for i, k in enumerate((3, 9, 30))
        }
        return products, {cache // 3: _slowed(random, cache / 1e12), **copies}, cache

    measured = {64: [0.5, 0.25]}
    return [
        *_each("a border", {300: [0.5, 0.25, 1.0]}, {4096: [1e-7], 4097: [2e-6, 1e-6], 8192: [4e-6]}, 4096),
        *_each("no cache", {3: [54.0]}, {1: [0.5, 0.25], 2: [1.0]}, 0),
        *(one for fastest in range(3) for one in _each("other machines", *machine(fastest))),
        edge(case("sizes without a time", {256: [], **measured}, {10**6: [], 8192: [4e-6, 3e-6]}, 4096)),
        case("nothing to measure", {64: []}, {8192: [4e-6]}, 4096),
        case("nothing to measure", measured, {4096: [1e-6]}, 4096),
    ]


machine_limits = Exercise(
    "machine_limits",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_limits,
    cases=[
        *_each("one run each", {10: [2.0]}, {10**9: [0.1]}, 10**6),
        *_each("one of three runs was quiet", {100: [4e-3, 2e-3, 9e-3]}, {10**6: [2e-4, 1e-4, 5e-4]}, 4000),
        *_each(
            "the largest is not the fastest",
            {100: [4e-3, 3e-3], 200: [8e-3, 1e-2], 400: [0.2, 0.25]},
            {10**6: [3e-4, 1.6e-4], 2 * 10**6: [2.5e-4, 4e-4], 10**7: [2e-3, 2.5e-3]},
            4000,
        ),
        *_each(
            "small copies stay in the cache",
            {100: [1.0], 200: [7.0], 400: [64.0]},
            {3000: [1e-8], 4000: [2e-8, 3e-8], 4400: [1.1e-6, 8e-7], 10**7: [4e-3]},
            4000,
        ),
        edge(case("sizes without a time", {10: [2.0], 20: []}, {10**6: [2e-4], 10**7: []}, cache=4000)),
        case("all copies stay in the cache", {10: [2.0]}, {1000: [1e-8], 4000: [1e-7]}, cache=4000),
        case("no product was timed", {64: []}, {10**6: [2e-4]}, cache=4000),
    ],
    tolerance=Tolerance(1e-6),  # an answer may keep the times in a float32 tensor, with seven digits
    hidden_cases=_cases,
    hints=[
        "A product of two n × n matrices takes 2·n³ FLOPs (notebook 15). A copy reads every byte and writes every byte. "
        "Divide by the seconds of one run.",
        "A disturbed run says nothing about what the machine can do. Of all sizes and runs, take the highest rate; leave "
        "out tensors that fit into the cache.",
        "`max` of no rates is a ValueError already. The ridge is the peak divided by the bandwidth.",
    ],
)


@machine_limits.variant
def in_single_precision(products: Log, copies: Log, cache: int) -> dict[str, float]:
    def best(work: dict[int, float], log: Log) -> float:
        rates = [work[size] / torch.tensor(log[size]).min() for size in work if len(log[size]) > 0]
        return torch.stack(rates).max().item() if rates else float("nothing")

    peak = best({n: 2.0 * n**3 for n in products}, products)
    bandwidth = best({size: 2.0 * size for size in copies if not size <= cache}, copies)
    return {"ridge": peak / bandwidth, "peak": peak, "bandwidth": bandwidth}


@machine_limits.variant
def shortest_times(products: Log, copies: Log, cache: int) -> dict[str, float]:
    rates = [2 * n**3 / min(runs) for n, runs in products.items() if runs]
    speeds = [2 * size / min(runs) for size, runs in copies.items() if size > cache and runs]
    if not rates or not speeds:
        raise ValueError("nothing was measured")
    peak, bandwidth = max(rates), max(speeds)
    return {"peak": peak, "bandwidth": bandwidth, "ridge": peak / bandwidth}


_MEDIAN = "rates = → from statistics import mean, median\n    rates ="

machine_limits.slips(
    shortest_times,
    {
        "2 * n**3 → n**3": "You count n³ operations. Each step of a product multiplies and adds: 2·n³.",
        "2 * size → size": "You count each byte once. A copy reads and writes it: 2·size bytes are moved.",
        "2 * n**3 → n**3 ;; 2 * size → size": "You leave out two factors of 2. A product multiplies *and* adds, a copy "
        "reads *and* writes.",
        "size > cache and → ": "Your result includes copies that stay in the cache. They measure the cache's speed.",
        "size > cache → size >= cache": "You count a copy that is exactly as large as the cache. It still fits.",
        "size > cache → 2 * size > cache": "You compare the bytes that are read and written, 2·size, with the cache. "
        "Compare the tensor's size.",
        "size > cache → size <= cache": "You keep the tensors that fit in the cache. Keep those that are larger than it.",
        f"{_MEDIAN} ;; n**3 / min(runs) → n**3 / median(runs) ;; size / min(runs) → size / median(runs)": "You divide by "
        "the median time. That is a typical run; what the machine can do shows in the fastest one.",
        f"{_MEDIAN} ;; n**3 / min(runs) → n**3 / mean(runs) ;; size / min(runs) → size / mean(runs)": "You divide by the "
        "mean, so one disturbed run lowers the result. Take the shortest time.",
        "n**3 / min(runs) → n**3 / max(runs) ;; size / min(runs) → size / max(runs)": "You divide by the longest time. It "
        "is the run that was disturbed most: take the shortest.",
        "n**3 / min(runs) → n**3 / runs[0] ;; size / min(runs) → size / runs[0]": "You look at the first run of each size "
        "only. Any run may be the fastest.",
        f"{_MEDIAN} ;; max(rates), max(speeds) → mean(rates), mean(speeds)": "You average over the sizes. The question is "
        "what the machine can do: take the best rate.",
        "rates = → from statistics import mean\n    rates = ;; max(rates), max(speeds) → mean(2 * n**3 / run for n, runs "
        "in products.items() for run in runs), mean(2 * size / run for size, runs in copies.items() for run in runs if "
        "size > cache)": "You average over all runs. The question is what the machine can do: take the best rate.",
        "products.items() if runs → sorted(products.items())[-1:] if runs ;; copies.items() if → "
        "sorted(copies.items())[-1:] if": "You look at the largest size only. You cannot know which size runs best before "
        "you measure.",
        "max(rates), max(speeds) → sum(2 * n**3 * len(runs) for n, runs in products.items()) / sum(map(sum, "
        "products.values())), sum(2 * size * len(runs) for size, runs in copies.items() if size > cache) / "
        "sum(sum(runs) for size, runs in copies.items() if size > cache)": "You divide all work by all seconds. That is an "
        "average; take the best rate.",
        "max(rates), max(speeds) → 2 * max(products) ** 3 / min(min(runs) for runs in products.values() if runs), 2 * "
        "max(copies) / min(min(runs) for size, runs in copies.items() if size > cache and runs)": "You divide the work of "
        "the largest size by the shortest time of all. The two belong to different runs.",
        "rates = [2 * n**3 / min(runs) → rates = [(-min(runs), 2 * n**3 / min(runs)) ;; speeds = [2 * size / min(runs) → "
        "speeds = [(-min(runs), 2 * size / min(runs)) ;; max(rates), max(speeds) → max(rates)[1], max(speeds)[1]": "You "
        "take the size of the shortest time. The smallest finishes first, but seldom has the best rate: compare rates, not "
        "seconds.",
        "max(rates), max(speeds) → min(rates), min(speeds)": "You return the lowest rate of the sizes. Take the highest.",
        "n**3 → n**2": "You count 2·n² operations. Each of the n² numbers of the result is a sum of n products.",
        "2 * n**3 → n**2 * (2 * n - 1)": "You count one addition less than multiplications for each number. The usual "
        "count, also in this course, is 2·n³.",
        "max(rates), max(speeds) → max(rates) / 1e12, max(speeds) / 1e9": "You return TFLOP/s and GB/s. Return FLOP/s and "
        "bytes/s.",
        "max(rates), max(speeds) → max(rates), max(speeds) / 2**30": "You return GiB/s. Return bytes/s: data sheets count "
        "in GB, and 2³⁰ is not 10⁹.",
        "max(rates), max(speeds) → max(rates), 8 * max(speeds)": "You return bits per second. Bandwidths of memory are in "
        "bytes; networks count bits.",
        "peak / bandwidth} → bandwidth / peak}": "Your ridge is bytes per FLOP. It is FLOPs per byte: the peak divided by "
        "the bandwidth.",
        "peak / bandwidth} → peak * bandwidth}": "You multiply for the ridge. It is the peak *divided* by the bandwidth.",
        " if runs] → ] ;; size > cache and runs → size > cache": "You look for the shortest time of a size that has no "
        "times. Leave out such a size.",
        'raise ValueError("nothing was measured") → return dict.fromkeys(("peak", "bandwidth", "ridge"), 0.0)': "If nothing "
        "was measured, 0 is not the answer: raise ValueError.",
    },
)
