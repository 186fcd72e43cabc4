"""The exercises on what a machine can do: measured, from data sheets, and how much of it a step uses."""

from __future__ import annotations

import statistics
from fractions import Fraction
from random import Random
from typing import Any

import torch

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Log = dict[int, list[float]]
"""Maps the width of a product, or the bytes of a copied tensor, to the seconds of each run."""

LIMITS = ("peak", "bandwidth", "ridge")


def shortest_times(products: dict[int, list[float]], copies: dict[int, list[float]], cache: int) -> dict[str, float]:
    rates = [2 * n**3 / min(runs) for n, runs in products.items() if runs]
    speeds = [2 * size / min(runs) for size, runs in copies.items() if size > cache and runs]
    if not rates or not speeds:
        raise ValueError("nothing was measured")
    peak, bandwidth = max(rates), max(speeds)
    return {"peak": peak, "bandwidth": bandwidth, "ridge": peak / bandwidth}


def _each(name: str, products: Log, copies: Log, cache: int) -> list[Case]:
    """A case for each limit, so that each earns points alone."""
    call = f"machine_limits({products!r}, {copies!r}, cache={cache})"
    return [script(f"{name}: {limit}", f'{call}["{limit}"]') for limit in LIMITS]


def _slowed(random: Random, best: float, runs: int = 4) -> list[float]:
    """Times of runs, none of which is faster than `best`, and one of which takes just that."""
    times = [best, *(best * random.uniform(1.1, 2.0) for _ in range(runs - 1))]
    random.shuffle(times)
    return times


def _limits_cases(random: Random) -> list[Case]:
    def machine(fastest: int) -> tuple[Log, Log, int]:
        """Rates of about 1e12 FLOP/s and 1e10 bytes/s; the `fastest` of three sizes is the best, the cache faster."""
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
    reference=shortest_times,
    cases=[
        *_each("one run each", {10: [2.0]}, {10**9: [0.1]}, 10**6)[:2],
        *_each("one of three runs was quiet", {100: [4e-3, 2e-3, 9e-3]}, {10**6: [2e-4, 1e-4, 5e-4]}, 4000)[:2],
        *_each(
            "the largest is not the fastest",
            {100: [4e-3, 3e-3], 200: [8e-3, 1e-2], 400: [0.18, 0.25]},
            {10**6: [3e-4, 1.6e-4], 2 * 10**6: [2.5e-4, 4e-4], 10**7: [1.5e-3, 2.5e-3]},
            4000,
        ),
        *_each(
            "small copies stay in the cache",
            {100: [1.0], 200: [7.0], 400: [64.0]},
            {3000: [1e-8], 4000: [2e-8, 3e-8], 4400: [1.1e-6, 8e-7], 10**7: [4e-3]},
            4000,
        ),
        *map(edge, _each("sizes without a time", {10: [3.0], 20: []}, {10**6: [3e-4], 10**7: []}, 4000)[:2]),
        case("all copies stay in the cache", {10: [2.0]}, {1000: [1e-8], 4000: [1e-7]}, cache=4000),
        case("no product was timed", {64: []}, {10**6: [2e-4]}, cache=4000),
    ],
    tolerance=Tolerance(1e-6),  # an answer may keep the times in a float32 tensor, with seven digits
    hidden_cases=_limits_cases,
    hints=[
        "A product of two n × n matrices takes 2·n³ FLOPs (notebook 15). A copy reads every byte and writes every "
        "byte. Divide by the seconds of one run.",
        "A disturbed run says nothing about what the machine can do. Of all sizes and runs, take the highest rate; "
        "leave out tensors that fit into the cache.",
        "`max` of no rates is a ValueError already. The ridge is the peak divided by the bandwidth.",
    ],
)


@machine_limits.variant
def in_fp32(products: dict[int, list[float]], copies: dict[int, list[float]], cache: int) -> dict[str, float]:
    def best(work: dict[int, float], log: dict[int, list[float]]) -> float:
        rates = [work[size] / torch.tensor(log[size]).min() for size in work if len(log[size]) > 0]
        return torch.stack(rates).max().item() if rates else float("nothing")

    peak = best({n: 2.0 * n**3 for n in products}, products)
    bandwidth = best({size: 2.0 * size for size in copies if not size <= cache}, copies)
    return {"ridge": peak / bandwidth, "peak": peak, "bandwidth": bandwidth}


machine_limits.variant(shortest_times)

_MEDIAN = "rates = → from statistics import mean, median\n    rates ="

machine_limits.slips(
    shortest_times,
    {
        "2 * n**3 → n**3": "You count n³ operations. Each step of a product multiplies and adds: 2·n³.",
        "2 * size → size": "You count each byte once. A copy reads and writes it: 2·size bytes are moved.",
        "size > cache and → ": "Your result includes copies that stay in the cache. They measure the cache's speed.",
        "size > cache → size >= cache": "You count a copy that is exactly as large as the cache. It still fits.",
        "size > cache → 2 * size > cache": "You compare the bytes that are read and written, 2·size, with the cache. "
        "Compare the tensor's size.",
        "size > cache → size <= cache": "You keep the tensors that fit in the cache. Keep those that are larger than "
        "it.",
        f"{_MEDIAN} ;; n**3 / min(runs) → n**3 / median(runs) ;; size / min(runs) → size / median(runs)": "You divide "
        "by the median time. That is a typical run; what the machine can do shows in the fastest one.",
        f"{_MEDIAN} ;; n**3 / min(runs) → n**3 / mean(runs) ;; size / min(runs) → size / mean(runs)": "You divide by "
        "the mean, so one disturbed run lowers the result. Take the shortest time.",
        "n**3 / min(runs) → n**3 / max(runs) ;; size / min(runs) → size / max(runs)": "You divide by the longest time. "
        "It is the run that was disturbed most: take the shortest.",
        "n**3 / min(runs) → n**3 / runs[0] ;; size / min(runs) → size / runs[0]": "You look at the first run of each "
        "size only. Any run may be the fastest.",
        f"{_MEDIAN} ;; max(rates), max(speeds) → mean(rates), mean(speeds)": "You average over the sizes. The question "
        "is what the machine can do: take the best rate.",
        "rates = → from statistics import mean\n    rates = ;; max(rates), max(speeds) → mean(2 * n**3 / run for n, "
        "runs in products.items() for run in runs), mean(2 * size / run for size, runs in copies.items() for run in "
        "runs if size > cache)": "You average over all runs. The question is what the machine can do: take the best "
        "rate.",
        "products.items() if runs → sorted(products.items())[-1:] if runs": "You look at the largest product only. You "
        "cannot know which size runs best before you measure.",
        "copies.items() if → sorted(copies.items())[-1:] if": "You look at the largest copy only. Any copy that does "
        "not fit into the cache may be the fastest.",
        "max(rates), max(speeds) → sum(2 * n**3 * len(runs) for n, runs in products.items()) / sum(map(sum, "
        "products.values())), sum(2 * size * len(runs) for size, runs in copies.items() if size > cache) / "
        "sum(sum(runs) for size, runs in copies.items() if size > cache)": "You divide all work by all seconds. That "
        "is an average; take the best rate.",
        "max(rates), max(speeds) → 2 * max(products) ** 3 / min(min(runs) for runs in products.values() if runs), 2 * "
        "max(copies) / min(min(runs) for size, runs in copies.items() if size > cache and runs)": "You divide the work "
        "of the largest size by the shortest time of all. The two belong to different runs.",
        "[2 * n**3 / min(runs) → [(-min(runs), 2 * n**3 / min(runs)) ;; [2 * size / min(runs) → [(-min(runs), 2 * size "
        "/ min(runs)) ;; max(rates), max(speeds) → max(rates)[1], max(speeds)[1]": "You take the size of the shortest "
        "time. The smallest finishes first, but seldom has the best rate: compare rates, not seconds.",
        "max(rates), max(speeds) → min(rates), min(speeds)": "You return the lowest rate of the sizes. Take the "
        "highest.",
        "n**3 → n**2": "You count 2·n² operations. Each of the n² numbers of the result is a sum of n products.",
        "2 * n**3 → n**2 * (2 * n - 1)": "You count one addition less than multiplications for each number. The usual "
        "count, also in this course, is 2·n³.",
        "max(rates), max(speeds) → max(rates) / 1e12, max(speeds) / 1e9": "You return TFLOP/s and GB/s. Return FLOP/s "
        "and bytes/s.",
        "max(rates), max(speeds) → max(rates), max(speeds) / 2**30": "You return GiB/s. Return bytes/s: data sheets "
        "count in GB, and 2³⁰ is not 10⁹.",
        "max(rates), max(speeds) → max(rates), 8 * max(speeds)": "You return bits per second. Bandwidths of memory are "
        "in bytes; networks count bits.",
        "peak / bandwidth} → bandwidth / peak}": "Your ridge is bytes per FLOP. It is FLOPs per byte: the peak divided "
        "by the bandwidth.",
        "peak / bandwidth} → peak * bandwidth}": "You multiply for the ridge. It is the peak *divided* by the "
        "bandwidth.",
        " if runs] → ] ;; size > cache and runs → size > cache": "A size without a time stops your answer. Leave out "
        "such a size.",
        'raise ValueError("nothing was measured") → return dict.fromkeys(("peak", "bandwidth", "ridge"), 0.0)': "If "
        "nothing was measured, 0 is not the answer: raise ValueError.",
    },
)


def what_a_unit_is_worth(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> float:
    worth = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}
    if unit not in worth:
        raise ValueError(f"unknown unit of bandwidth {unit!r}")
    peak = tflops * 10**12 / (2 if sparse else 1)
    return peak / (bandwidth * worth[unit])


def _ridge_cases(random: Random) -> list[Case]:
    def tflops() -> float:
        return round(random.uniform(50, 3000), 1)

    return [
        case("powers of two", 128.0, 512, unit="GiB/s"),
        case("powers of two", 256.0, 0.5, unit="TiB/s", sparse=True),
        case("terabytes", 100.0, 2, unit="TB/s"),
        *(case("unknown units", 312.0, 600.0, unit=unit) for unit in ("gb/s", "TB", "PB/s", "MB/s", " GB/s", "")),
        *(case("other chips", tflops(), random.randint(300, 9000)) for _ in range(3)),
        case("sparse peaks", tflops(), random.randint(300, 9000), sparse=True),
        *(case("terabytes", tflops(), round(random.uniform(0.3, 9), 2), unit="TB/s") for _ in range(2)),
        case("powers of two", tflops(), round(random.uniform(0.3, 9), 2), unit="TiB/s"),
        case("powers of two", tflops(), random.randint(300, 9000), unit="GiB/s", sparse=True),
    ]


ridge_point = Exercise(
    "ridge_point",
    points=2,
    minutes=5,
    difficulty=1,
    reference=what_a_unit_is_worth,
    cases=[
        case("a toy: 1 TFLOP/s and 100 GB/s", 1.0, 100.0),
        case("A100 80 GB, from its data sheet", 312.0, 2039.0),
        case("the same bandwidth in TiB/s", 312.0, 1.8545, unit="TiB/s"),
        case("the same bandwidth in GiB/s", 312.0, 1899.0, unit="GiB/s"),
        case("H100, from the sparse figure", 1978.9, 3.35, unit="TB/s", sparse=True),
        case("gigabits", 312.0, 600.0, unit="Gbit/s"),
        case("small letters", 312.0, 600.0, unit="gb/s"),
        case("a space before the unit", 312.0, 600.0, unit=" GB/s"),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_ridge_cases,
    hints=[
        "Convert both to base units first: FLOP/s and bytes/s. A tera is 10¹², a giga 10⁹.",
        'A dict holds what each unit is worth: {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}.',
        "Peak divided by bandwidth; half the peak if it is the sparse one. An unknown unit is a ValueError.",
    ],
)


@ridge_point.variant
def exactly(tflops: float, bandwidth: float, unit: str = "GB/s", sparse: bool = False) -> Fraction:
    names = ["GB/s", "TB/s", "GiB/s", "TiB/s"]
    worth = [10**9, 10**12, 2**30, 2**40][names.index(unit)]
    return Fraction(tflops) / (1 + sparse) * 10**12 / worth / Fraction(bandwidth)


ridge_point.variant(what_a_unit_is_worth)

ridge_point.slips(
    what_a_unit_is_worth,
    {
        "2**30 → 1e9 ;; 2**40 → 1e12": "You read a TiB as a TB (and a GiB as a GB). A TiB is 2⁴⁰ bytes, a tenth more "
        "than a TB.",
        '10**12 → (2**40 if "i" in unit else 10**12)': "With binary units you count the peak in powers of 1024, too. "
        "Only the bandwidth is in such a unit: a TFLOP is 10¹² FLOPs.",
        "1e9 → 2**30 ;; 1e12 → 2**40": "You read a TB as a TiB. Data sheets count in powers of ten: a TB/s is 10¹² "
        "bytes/s.",
        " / (2 if sparse else 1) → ": "You use the sparse peak. Weights in training are dense: half of it.",
        "/ (2 if sparse else 1) → * (2 if sparse else 1)": "You double the figure for sparse matrices. It is already "
        "twice the dense peak: halve it.",
        "(2 if sparse else 1) → 2": "You halve every peak. Only the figure for sparse matrices needs that.",
        "peak / (bandwidth * worth[unit]) → bandwidth * worth[unit] / peak": "You return bandwidth / peak, bytes per "
        "FLOP. The ridge is FLOPs per byte.",
        '10**12 → (10**9 if unit.startswith("G") else 10**12)': "You divide tera by giga, so the result is a thousand "
        "times too small. Convert both to base units.",
        "return peak → return 2 * peak": "You return FLOPs per bf16 number. The ridge is FLOPs per byte.",
        'raise ValueError(f"unknown unit of bandwidth {unit!r}") → unit = "GB/s"': "You guess what an unknown unit "
        "means. A gigabit is an eighth of a gigabyte: raise ValueError.",
        "if unit not in worth: → unit = {name.lower(): name for name in worth}.get(unit.lower(), unit)\n    if unit "
        "not in worth:": "You accept units in small letters. In “gb/s” the b may be a bit: accept only the four names "
        "as they are written.",
        'if unit not in worth: → unit = f"{unit[:1]}B/s"\n    if unit not in worth:': "You look only at the first "
        "letter of the unit. GiB and Gbit begin with the same letter as GB, and mean something else.",
        "2**30 → 1e18 / 2**30 ;; 2**40 → 1e24 / 2**40": "You make a TiB (and a GiB) smaller than a TB. It is larger: "
        "1,024⁴ bytes, not 1,000⁴.",
        '"GB/s": 1e9 → "GB/s": 2**40 ;; "TiB/s": 2**40 → "TiB/s": 1e9': "You swapped GB and TiB. A GB is 10⁹ bytes, a "
        "TiB 2⁴⁰.",
        '"GiB/s": 2**30, "TiB/s": 2**40 → "GiB/s": 2**40, "TiB/s": 2**30': "You swapped GiB and TiB. A GiB is 2³⁰ "
        "bytes, a TiB 2⁴⁰.",
        '"GB/s": 1e9, "TB/s": 1e12 → "GB/s": 1e12, "TB/s": 1e9': "You swapped GB and TB. A GB is 10⁹ bytes, a TB 10¹².",
        "2**30 → 2**20 ;; 2**40 → 2**30": "A GiB of yours is 2²⁰ bytes, and a TiB 2³⁰. A GiB has 2³⁰ bytes, a TiB 2⁴⁰.",
        "bandwidth * worth[unit] → bandwidth / worth[unit]": "You divide the bandwidth by the size of its unit. "
        "Multiply: a TB/s is 10¹² bytes/s.",
        "tflops * 10**12 → tflops": "You leave the peak in TFLOP/s. A tera is 10¹²: convert both to base units.",
        "tflops * 10**12 → tflops * 10**9": "You take a tera for 10⁹. It is 10¹².",
        "return peak / (bandwidth * worth[unit]) → return round(peak / (bandwidth * worth[unit]), 1)": "You round the "
        "ridge point. Return it as it is: others compute with it.",
        "2 if sparse else 1 → 1 if sparse else 2": "You halve the dense peak, and keep the sparse one. The figure for "
        "sparse matrices is the one to halve.",
        "if unit not in worth: → unit = unit.strip()\n    if unit not in worth:": "You accept a unit with a space "
        "before it. Accept only the four names as they are written.",
    },
)


Peaks = dict[str, dict[str, float]]
"""Dense FLOP/s by the driver's name of the device and by format."""


def _peaks(name: str, *numbers: Format) -> dict[str, float]:
    accelerator = find_accelerator(name)
    return {number: float(accelerator.peak(number)) for number in numbers}


PEAKS: Peaks = {
    "NVIDIA A100-SXM4-80GB": _peaks("a100-sxm-80gb", "fp32", "tf32", "bf16"),
    "NVIDIA H100 PCIe": _peaks("h100-pcie", "fp32", "tf32", "bf16"),
    "NVIDIA H100 80GB HBM3": _peaks("h100-sxm", "fp32", "tf32", "bf16"),
    "Tesla V100-SXM2-32GB": _peaks("v100-sxm-32gb", "fp32", "fp16"),
}
A100, H100_PCIE, H100, V100 = PEAKS


def time_at_the_peak(flops: float, seconds: list[float], device: str, number: str, peaks: Any) -> float:
    if device not in peaks or number not in peaks[device]:
        raise ValueError("no peak is known for this device and format")
    share = flops / peaks[device][number] / statistics.median(seconds)
    if share > 1:
        raise ValueError("the rate is above the peak")
    return share


def _mfu_cases(random: Random) -> list[Case]:
    def log(share: float, device: str, number: str) -> list[object]:
        seconds = [random.uniform(0.09, 0.11) for _ in range(4)] + [random.uniform(0.3, 0.5)]
        random.shuffle(seconds)
        flops = share * PEAKS[device][number] * statistics.median(seconds)
        return [flops, seconds, device, number, PEAKS]

    toy = {"toy": {"fp8": 1024.0, "bf16": 512.0}, "toy XL": {"bf16": 2048.0}}
    return [
        case("other GPUs", 256.0, [1.0, 4.0, 2.0], "toy", "bf16", toy),
        case("other GPUs", 256.0, [0.5], "toy XL", "bf16", toy),
        case("other GPUs", 3.0, [2.0], "toy", "bf16", toy),
        case("exactly the peak", 512.0, [0.5], "toy", "fp8", toy),
        case("an even number of steps", 256.0, [1.0, 0.5, 4.0, 3.0], "toy", "bf16", toy),
        case("rates that cannot be", 514.0, [1.0, 1.0, 4.0], "toy", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "toy X", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "TOY", "bf16", toy),
        case("unknown GPUs", 256.0, [1.0], "a toy", "bf16", toy),
        case("formats it does not have", 256.0, [1.0], "toy XL", "fp8", toy),
        case("formats it does not have", 256.0, [1.0], "toy", "BF16", toy),
        *(case("other steps", *log(random.uniform(0.2, 0.6), name, "bf16")) for name in (A100, H100_PCIE, H100)),
        case("other formats", *log(random.uniform(0.2, 0.6), H100, "tf32")),
        case("other formats", *log(random.uniform(0.2, 0.6), V100, "fp16")),
        case("fp32", *log(random.uniform(0.2, 0.6), A100, "fp32")),
        *(case("rates that cannot be", *log(random.uniform(2.1, 2.9), name, "bf16")) for name in (A100, H100)),
    ]


mfu_of_step = Exercise(
    "mfu_of_step",
    points=3,
    minutes=8,
    difficulty=2,
    reference=time_at_the_peak,
    cases=[
        case("half the bf16 peak", 49.47e12, [0.1, 0.1, 0.1], H100, "bf16", PEAKS),
        case("one disturbed step", 0.624e12, [0.1, 0.09, 0.12, 0.4, 0.1], A100, "bf16", PEAKS),
        case("four steps", 1.1e12, [0.13, 0.1, 0.2, 0.11], H100, "tf32", PEAKS),
        case("another variant, two steps", 18.9e12, [0.03125, 0.0625], H100_PCIE, "bf16", PEAKS),
        case("a V100 in fp16", 12.5e12, [0.25, 0.2, 0.25], V100, "fp16", PEAKS),
        case("in fp32", 1.95e12, [0.2], A100, "fp32", PEAKS),
        case("a GPU that is not listed", 15.6e12, [0.1], "NVIDIA H100 NVL", "bf16", PEAKS),
        case("in small letters", 15.6e12, [0.1], A100.lower(), "bf16", PEAKS),
        case("a part of two names", 15.6e12, [0.1], "NVIDIA H100", "bf16", PEAKS),
        case("more than a listed name", 15.6e12, [0.1], f"{H100_PCIE} 80GB", "bf16", PEAKS),
        case("a format in capitals", 15.6e12, [0.1], A100, "BF16", PEAKS),
        case("a V100 has no bf16", 1.0e12, [0.1], V100, "bf16", PEAKS),
        case("more than the peak", 40.0e12, [0.1], A100, "bf16", PEAKS),
        edge(case("exactly the peak", 156e12, [0.5], A100, "bf16", PEAKS)),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_mfu_cases,
    hints=[
        "The typical step is the median of seconds. flops divided by it is the achieved rate.",
        "peaks[device][number] is the peak to divide by. If it is not in the table, raise ValueError: do not guess.",
        "If the share is above 1, something was counted or timed wrongly: raise ValueError.",
    ],
)


@mfu_of_step.variant
def with_a_quantile(flops: float, seconds: list[float], device: str, number: str, peaks: Any) -> torch.Tensor:
    peak = dict(peaks.get(device) or {}).get(number)
    if peak is None:
        raise ValueError("no peak is known for this device and format")
    share = torch.tensor(flops / peak) / torch.quantile(torch.tensor(seconds), 0.5)
    if share.item() > 1:
        raise ValueError("the share is above 100 %")
    return share


mfu_of_step.variant(time_at_the_peak)

mfu_of_step.slips(
    time_at_the_peak,
    {
        'if device not in → family = device.split("-")[0].split()[1][:4]\n    device = device if device in peaks else '
        "next(name for name in peaks if family in name)\n    if device not in": "For a GPU that is not listed you use "
        "one with a similar name. Variants of an H100 differ by a third: raise an error.",
        "if device not in → device = next((name for name in peaks if name.startswith(device) or "
        "device.startswith(name)), device)\n    if device not in": "You accept a name that begins like a listed one. "
        "Several GPUs can begin alike: only the whole name shows which one it is.",
        'peaks[device][number] → peaks[device]["fp32"] ;; the rate is above the peak → cannot be': "You always divide "
        "by the fp32 peak. Use the peak of the format `number`.",
        " or number not in peaks[device] →  ;; peaks[device][number] → peaks[device].get(number, "
        "max(peaks[device].values()))": "If a GPU lacks the format, you use its highest peak. A V100 has no bf16 "
        "units: raise an error.",
        "peaks[device][number] → (2 * peaks[device][number])": "You double the peak. The table already lists dense "
        "peaks, and training does not use sparse ones.",
        "statistics.median → statistics.mean": "You take the mean of the steps, so one disturbed step lowers the "
        "result. Take the median.",
        "statistics.median(seconds) → seconds[len(seconds) // 2]": "You take the step in the middle of the log. The "
        "median is in the middle of the sorted times.",
        "statistics.median → min": "You take the fastest step. A run is made of all of them: take the median.",
        "if share > 1: → if False:": "You return a share above 1. It is impossible: raise ValueError, so that the "
        "mistake is noticed.",
        'raise ValueError("the rate is above the peak") → return 1.0': "You cap the share at 1, which hides a "
        "mistake. Raise ValueError.",
        "share > 1 → share >= 1": "You reject a share of exactly 1. Only a share above 1 is impossible.",
        "return share → return 100 * share": "You return percentages. A share is between 0 and 1.",
        "statistics.median → sum": "You divide by the time of all steps together. `flops` is for one step.",
        "return share → return 1 / share": "You return the peak divided by the rate. MFU is the rate divided by the "
        "peak.",
        "if device not in → peaks = {name.lower(): {kind.lower(): peak for kind, peak in row.items()} for name, "
        "row in peaks.items()}\n    device, number = device.lower().strip(), number.lower().strip()\n    if device not "
        "in": "You ignore capitals in a name. Only a name as it is written in the table is known.",
        "statistics.median → statistics.median_high": "Of an even number of steps you take the slower of the two in "
        "the middle. The median is the mean of both.",
        "if device not in → device = next((name for name in peaks if name in device), device)\n    if device not "
        "in": "You accept a name that contains a listed one. With 80 GB an H100 may be another chip: only the whole "
        "name shows which one it is.",
        "if device not in → number = number.lower()\n    if device not in": "You ignore capitals in a format. Only a "
        "format as it is written in the table is known.",
        "if device not in → device = next((name for name in peaks if name.lower() == device.lower()), device)\n    if "
        "device not in": "You ignore capitals in the name of a GPU. Only a name as it is written in the table is "
        "known.",
        "statistics.median → statistics.median_low": "Of an even number of steps you take the faster of the two in the "
        "middle, as torch.median does. The median is the mean of both.",
        "statistics.median(seconds) → seconds[0]": "You take the first step of the log. The median is in the middle of "
        "the sorted times.",
        "statistics.median → max": "You take the slowest step. One disturbed step then decides: take the median.",
        "share = flops → share = 3 * flops": "You multiply the FLOPs by three. `flops` are those of a whole step, "
        "backward too.",
        "share = flops → share = 6 * flops": "You multiply the FLOPs by six. `flops` are those of a whole step "
        "already.",
        " / peaks[device][number] → ": "You return FLOP/s, or compare them with 1. Divide by the peak.",
        " or number not in peaks[device] →  ;; peaks[device][number] → peaks[device].get(number, "
        'peaks[device]["fp32"])': "If a GPU lacks the format, you use its fp32 peak. A V100 has no bf16 units: raise "
        "an error.",
        "flops / peaks[device][number] / statistics.median(seconds) → statistics.median([flops / peaks[device][number] "
        "/ each for each in seconds])": "You take the median of the rates. For an even number of steps it is not the "
        "rate of the median time: take the median of `seconds` first.",
        "flops / peaks[device][number] / statistics.median(seconds) → statistics.mean([flops / peaks[device][number] / "
        "each for each in seconds])": "You average the rates of the steps. Take the median of `seconds`, and divide by "
        "it.",
    },
)
