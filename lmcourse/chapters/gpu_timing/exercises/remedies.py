"""The exercise on the remedy that speeds up measured kernels most: a higher peak, more bandwidth, or no launches."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Kernels = list[list[float]]
"""For each kernel: FLOPs, bytes moved and measured seconds."""

Times = dict[str, float]


def _best(flops: float, moved: float, peak: float, bandwidth: float) -> Fraction:
    """Return the roofline's time as an exact fraction."""
    return max(Fraction(flops) / Fraction(peak), Fraction(moved) / Fraction(bandwidth))


def _times(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    """Times after each remedy, in exact fractions. A remedy changes the roofline's time; the rest of a measured time
    stays."""
    machines = {"peak": (2 * peak, bandwidth), "bandwidth": (peak, 2 * bandwidth), "launches": (peak, bandwidth)}
    times = dict.fromkeys(machines, Fraction(0))
    for flops, moved, seconds in kernels:
        rest = Fraction(seconds) - _best(flops, moved, peak, bandwidth)
        if rest < 0:
            raise ValueError("a kernel is faster than its roofline")
        for remedy, machine in machines.items():
            times[remedy] += _best(flops, moved, *machine) + (0 if remedy == "launches" else rest)
    return {remedy: float(time) for remedy, time in times.items()}


def _cases(random: Random) -> list[Case]:
    toy = {"peak": 128.0, "bandwidth": 16.0}

    def kernel(arithmetic: float, memory: float, rest: float) -> list[float]:
        return [arithmetic * 128.0, memory * 16.0, max(arithmetic, memory) + rest]

    def eighths(low: int, high: int) -> float:
        return random.randint(low, high) / 8

    mixed = [kernel(eighths(1, 80), eighths(1, 80), eighths(1, 60)) for _ in range(6)]
    return [
        edge(case("exactly the roofline", [kernel(8.0, 3.0, 0.0)], **toy)),
        edge(case("exactly the roofline", [kernel(3.0, 8.0, 0.0), kernel(5.0, 5.0, 0.0)], **toy)),
        edge(case("a copy", [[0.0, 96.0, 8.0]], **toy)),
        edge(case("nothing moves", [[512.0, 0.0, 8.0]], **toy)),
        edge(case("no kernels", [], **toy)),
        case("the other limit takes over", [kernel(8.0, 6.0, 1.0), kernel(4.0, 7.0, 2.0)], **toy),
        case("large products", [kernel(eighths(40, 80), eighths(1, 20), eighths(1, 20)) for _ in range(2)], **toy),
        case("copies and the like", [kernel(eighths(1, 20), eighths(40, 80), eighths(1, 20)) for _ in range(2)], **toy),
        case("tiny kernels", [kernel(eighths(1, 4), eighths(1, 4), eighths(60, 90)) for _ in range(3)], **toy),
        case("several kernels", mixed[:3], **toy),
        case("several kernels", mixed[3:], **toy),
        case("faster than the roofline", [kernel(8.0, 3.0, 1.0), kernel(8.0, 3.0, -0.5)], **toy),
        case("faster than the roofline", [kernel(3.0, 8.0, -1.0), kernel(8.0, 3.0, 2.0)], **toy),
    ]


what_helps = Exercise(
    "what_helps",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_times,
    cases=[
        case("a large product", [[800.0, 20.0, 10.0]], peak=100.0, bandwidth=10.0),
        case("a sum", [[100.0, 60.0, 8.0]], peak=100.0, bandwidth=10.0),
        case("both nearly equal", [[600.0, 50.0, 8.0]], peak=100.0, bandwidth=10.0),
        case("two kernels", [[900.0, 30.0, 11.0], [40.0, 5.0, 4.0]], peak=100.0, bandwidth=10.0),
        edge(case("exactly the roofline", [[800.0, 20.0, 8.0]], peak=100.0, bandwidth=10.0)),
        case("only one is faster than it can be", [[800.0, 20.0, 7.5], [40.0, 5.0, 4.0]], peak=100.0, bandwidth=10.0),
        case("faster than the peak", [[1200.0, 20.0, 10.0]], peak=100.0, bandwidth=10.0),
        case("faster than the memory", [[50.0, 150.0, 10.0]], peak=100.0, bandwidth=10.0),
    ],
    hidden_cases=_cases,
    tolerance=Tolerance(1e-6),  # float32 is enough
    hints=[
        "Split a measured time in two: the time of the roofline, and the rest. Which remedy changes which?",
        "With twice the peak a kernel takes max(flops / (2·peak), moved / bandwidth) at best, plus the same rest as "
        "before.",
        "Without launches only the roofline's time is left. A negative rest is impossible: raise ValueError. Add up "
        "the kernels for each remedy.",
    ],
)


@what_helps.variant
def a_function_for_the_best_time(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, float]:
    def best(peak: float, bandwidth: float) -> list[float]:
        return [max(flops / peak, moved / bandwidth) for flops, moved, _ in kernels]

    now = best(peak, bandwidth)
    rest = [kernel[2] - time for kernel, time in zip(kernels, now, strict=True)]
    if any(each < 0 for each in rest):
        raise ValueError("the rate is above the peak")
    return {
        "launches": sum(now),
        "peak": sum(best(peak * 2, bandwidth)) + sum(rest),
        "bandwidth": sum(best(peak, bandwidth * 2)) + sum(rest),
    }


@what_helps.variant
def what_each_remedy_saves(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, float]:
    taken = sum(seconds for *_, seconds in kernels)
    times = {"peak": taken, "bandwidth": taken, "launches": 0.0}
    for flops, moved, seconds in kernels:
        computing, moving = flops / peak, moved / bandwidth
        if computing > seconds or moving > seconds:
            raise ValueError(f"{flops} FLOPs in {seconds} s")
        if computing > moving:
            times["peak"] -= min(computing / 2, computing - moving)
        else:
            times["bandwidth"] -= min(moving / 2, moving - computing)
        times["launches"] += max(computing, moving)
    return times


@what_helps.variant
def columns_in_double_precision(kernels: list[list[float]], peak: float, bandwidth: float) -> dict[str, torch.Tensor]:
    work = torch.tensor(kernels, dtype=torch.float64).reshape(-1, 3)
    computing, moving, seconds = work[:, 0] / peak, work[:, 1] / bandwidth, work[:, 2]
    rest = seconds - torch.maximum(computing, moving)
    if (rest < 0).any():
        raise ValueError(rest)
    return {
        "peak": (torch.maximum(computing / 2, moving) + rest).sum(),
        "bandwidth": (torch.maximum(computing, moving / 2) + rest).sum(),
        "launches": torch.maximum(computing, moving).sum(),
    }


for _change in (
    "best = max(computing, moving) → best = max(moving, computing)",
    "times['peak'] += max(computing / 2, moving) + seconds - best → "
    "times['peak'] += max(moving, computing / 2) + seconds - best",
    "times['bandwidth'] += max(computing, moving / 2) + seconds - best → "
    "times['bandwidth'] += max(moving / 2, computing) + seconds - best",
):
    what_helps.equivalent_mutant(_change, "The longer of two times is the same in either order.")


def _summed(kernels: Kernels, peak: float, bandwidth: float, rule: Callable[[float, float, float], Times]) -> Times:
    """Add up a rule over the kernels: it combines the computing, moving and measured time of each."""
    _times(kernels, peak, bandwidth)
    times = [rule(flops / peak, moved / bandwidth, seconds) for flops, moved, seconds in kernels]
    return {remedy: sum(time[remedy] for time in times) for remedy in ("peak", "bandwidth", "launches")}


@what_helps.misconception(
    "You halve the longer of the two times, all of it. The other time stays as it is, and may then be the longer one."
)
def no_other_limit(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        saved = max(computing, moving) / 2
        return {
            "peak": seconds - saved * (computing > moving),
            "bandwidth": seconds - saved * (moving >= computing),
            "launches": max(computing, moving),
        }

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception(
    "You subtract half of the computing and half of the moving time, whichever is the limit. The two overlap, so "
    "making the shorter one even shorter does not help."
)
def both_always_help(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        best = max(computing, moving)
        return {"peak": seconds - computing / 2, "bandwidth": seconds - moving / 2, "launches": best}

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception(
    "You halve the measured time. The part that neither computing nor moving explains stays as it is."
)
def measured_time_halved(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        arithmetic = computing > moving
        return {
            "peak": seconds / 2 if arithmetic else seconds,
            "bandwidth": seconds if arithmetic else seconds / 2,
            "launches": max(computing, moving),
        }

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception(
    "You scale the whole measured time, so the part that neither computing nor moving explains shrinks, too. It stays "
    "the same on a faster chip."
)
def rest_scaled(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        best = max(computing, moving)
        return {
            "peak": seconds * max(computing / 2, moving) / best,
            "bandwidth": seconds * max(computing, moving / 2) / best,
            "launches": best,
        }

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception(
    "With a faster chip your kernels take only the roofline's time. The rest, launches and Python, remains on any chip."
)
def rest_is_lost(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        return {
            "peak": max(computing / 2, moving),
            "bandwidth": max(computing, moving / 2),
            "launches": max(computing, moving),
        }

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception(
    "You add computing and moving. They happen at the same time: the roofline is the longer of the two."
)
def one_after_the_other(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        both = computing + moving
        return {"peak": seconds - computing / 2, "bandwidth": seconds - moving / 2, "launches": both}

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception("You return the time that neither explains. Without it, the roofline's time is left.")
def launches_kept(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    times = _times(kernels, peak, bandwidth)
    return times | {"launches": sum(kernel[2] for kernel in kernels) - times["launches"]}


@what_helps.misconception(
    "You add up FLOPs, bytes and seconds, and then draw one roof for all. One kernel's bytes do not move while "
    "another computes: split the time of each kernel."
)
def one_roof_for_all(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    _times(kernels, peak, bandwidth)
    return _times([[sum(column) for column in zip(*kernels, strict=True)]] if kernels else [], peak, bandwidth)


@what_helps.misconception(
    "You accept a kernel that is faster than the roofline. Something was measured wrongly: raise ValueError."
)
def too_fast_accepted(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    times = {"peak": 0.0, "bandwidth": 0.0, "launches": 0.0}
    for flops, moved, seconds in kernels:
        computing, moving = flops / peak, moved / bandwidth
        rest = seconds - max(computing, moving)
        times["peak"] += max(computing / 2, moving) + rest
        times["bandwidth"] += max(computing, moving / 2) + rest
        times["launches"] += max(computing, moving)
    return times


@what_helps.misconception("You swapped the peak and the bandwidth.")
def wrong_way_round(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    times = _times(kernels, peak, bandwidth)
    return times | {"peak": times["bandwidth"], "bandwidth": times["peak"]}


@what_helps.misconception("You return what each remedy saves. Return how long the kernels take with it.")
def seconds_saved(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    taken = sum(kernel[2] for kernel in kernels)
    return {remedy: taken - time for remedy, time in _times(kernels, peak, bandwidth).items()}


@what_helps.misconception("You return the last kernel's time. Add up all kernels.")
def last_kernel_only(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    _times(kernels, peak, bandwidth)
    return _times(kernels[-1:], peak, bandwidth)


@what_helps.misconception(
    "You compare the sum of all times with the roofline. A kernel that is too fast is then hidden by a slow one."
)
def only_the_sum_checked(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    if sum(kernel[2] for kernel in kernels) < sum(
        float(_best(kernel[0], kernel[1], peak, bandwidth)) for kernel in kernels
    ):
        raise ValueError("the rate is above the peak")
    times: Times = too_fast_accepted(kernels, peak, bandwidth)
    return times


@what_helps.misconception(
    "Your rest is the time minus computing *and* moving. They happen at the same time: subtract only the longer one."
)
def rest_beside_both(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        rest = seconds - computing - moving
        if rest < 0:
            raise ValueError("the rate is above the peak")
        return {
            "peak": max(computing / 2, moving) + rest,
            "bandwidth": max(computing, moving / 2) + rest,
            "launches": max(computing, moving),
        }

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception("Without launches you keep half of the rest. All of it disappears.")
def half_of_the_rest(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    times = _times(kernels, peak, bandwidth)
    return times | {"launches": (sum(kernel[2] for kernel in kernels) + times["launches"]) / 2}


@what_helps.misconception(
    "You subtract half of the computing and half of the moving, whichever is longer, and return the rest as the time "
    "without it. Only the longer of the two counts; without the rest, the roofline's time is left."
)
def halves_and_the_rest(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    times: Times = both_always_help(kernels, peak, bandwidth)
    return times | {"launches": launches_kept(kernels, peak, bandwidth)["launches"]}


@what_helps.misconception(
    "You reject a kernel that takes exactly the roofline's time. It is perfect, not impossible: reject only a shorter "
    "time."
)
def perfect_kernel_rejected(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    if any(_best(flops, moved, peak, bandwidth) == seconds for flops, moved, seconds in kernels):
        raise ValueError("the rate is above the peak")
    return _times(kernels, peak, bandwidth)


@what_helps.misconception(
    "You halve the roofline's time with either chip. Twice the peak shortens only computing, twice the bandwidth only "
    "moving."
)
def either_halves_both(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    def rule(computing: float, moving: float, seconds: float) -> Times:
        best = max(computing, moving)
        return {"peak": seconds - best / 2, "bandwidth": seconds - best / 2, "launches": best}

    return _summed(kernels, peak, bandwidth, rule)


@what_helps.misconception("You return how many times as fast. Return seconds.")
def times_as_fast(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    taken = sum(kernel[2] for kernel in kernels)
    return {remedy: taken / time if time else 1.0 for remedy, time in _times(kernels, peak, bandwidth).items()}


@what_helps.misconception(
    "Nothing becomes faster with your new chips, as if you computed the rest with their times. The rest is what "
    "*this* chip's roofline leaves unexplained."
)
def rest_of_the_new_chip(kernels: Kernels, peak: float, bandwidth: float) -> Times:
    taken = sum(kernel[2] for kernel in kernels)
    return _times(kernels, peak, bandwidth) | {"peak": taken, "bandwidth": taken}


@what_helps.misconception("You return a list with a time for each kernel. Add them up: one number for each remedy.")
def list_of_times(kernels: Kernels, peak: float, bandwidth: float) -> dict[str, list[float]]:
    times = [_times([kernel], peak, bandwidth) for kernel in kernels]
    return {remedy: [time[remedy] for time in times] for remedy in ("peak", "bandwidth", "launches")}
