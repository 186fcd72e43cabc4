"""The exercise on the roofline: the shortest possible time of a sequence of kernels."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.latency import Operation
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Kernels = list[list[float]]
"""For each kernel: FLOPs and bytes moved."""


def _by_the_course(kernels: Kernels, peak: float, bandwidth: float) -> float:
    chip = Accelerator("chip", "a chip", {"bf16": peak}, bandwidth, 1, None, None, ())
    # FLOPs and bytes are whole numbers, because the package counts nothing smaller.
    return sum(Operation(int(flops), int(moved)).seconds(chip, "bf16") for flops, moved in kernels)


def _cases(random: Random) -> list[Case]:
    def kernels(pattern: str) -> list[object]:
        """One kernel for each letter: arithmetic or memory takes about ten times as long as the other."""
        peak, bandwidth = random.uniform(1e14, 3e14), random.uniform(5e11, 9e11)
        works = []
        for letter in pattern:
            long, short = random.uniform(2e-3, 4e-3), random.uniform(2e-4, 4e-4)
            computing, moving = (long, short) if letter == "a" else (short, long)
            works.append([float(round(computing * peak)), float(round(moving * bandwidth))])
        return [works, peak, bandwidth]

    return [
        case("a copy", [[0.0, 2048.0]], 256.0, 64.0),
        case("at the ridge", [[1024.0, 256.0], [512.0, 128.0]], 256.0, 64.0),
        edge(case("nothing moves", [[512.0, 0.0], [256.0, 512.0]], 256.0, 64.0)),
        case("the same kernel twice", [[1024.0, 64.0], [256.0, 512.0], [1024.0, 64.0]], 256.0, 64.0),
        case("both kinds", [[1024.0, 64.0], [256.0, 512.0], [768.0, 128.0]], 256.0, 64.0),
        *(case("other kernels", *kernels(pattern)) for pattern in ("a", "m", "aam", "mmama")),
        case("both kinds", *kernels("am")),
    ]


roofline = Exercise(
    "roofline",
    points=3,
    minutes=5,
    difficulty=2,
    reference=_by_the_course,
    cases=[
        case("arithmetic takes longer", [[1000.0, 20.0]], peak=100.0, bandwidth=10.0),
        case("memory takes longer", [[100.0, 50.0]], peak=100.0, bandwidth=10.0),
        case("one of each", [[900.0, 20.0], [100.0, 40.0]], peak=100.0, bandwidth=10.0),
        case("three kernels", [[200.0, 93.0], [930.0, 30.0], [100.0, 26.0]], peak=100.0, bandwidth=10.0),
        case("a copy computes nothing", [[0.0, 40.0]], peak=100.0, bandwidth=10.0),
        edge(case("no kernels", [], peak=100.0, bandwidth=10.0)),
        edge(case("all of it is on the chip", [[500.0, 0.0]], peak=100.0, bandwidth=10.0)),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_cases,
    hints=[
        "Computing takes flops/peak, moving takes moved/bandwidth. Both happen at the same time within a kernel.",
        "So a kernel takes the longer of the two: max, not the sum.",
        "Kernels run one after the other. Take the max for each, and then add up.",
    ],
)


@roofline.variant
def the_first_and_the_rest(kernels: list[list[float]], peak: float, bandwidth: float) -> float:
    if not kernels:
        return 0
    (flops, moved), *rest = kernels
    rate = min(peak, flops / moved * bandwidth) if moved else peak
    first = flops / rate if rate else moved / bandwidth
    others: float = the_first_and_the_rest(rest, peak, bandwidth)
    return first + others


@roofline.variant
def columns_of_a_tensor(kernels: list[list[float]], peak: float, bandwidth: float) -> torch.Tensor:
    work = torch.tensor(kernels).reshape(-1, 2)
    return (work / torch.tensor([peak, bandwidth])).amax(dim=1).sum()


@roofline.variant
def longer_of_two_times(kernels: list[list[float]], peak: float, bandwidth: float) -> float:
    seconds = 0.0
    for flops, moved in kernels:
        computing, moving = flops / peak, moved / bandwidth
        seconds += max(computing, moving)
    return seconds


roofline.slips(
    longer_of_two_times,
    {
        "max(computing, moving) → computing + moving": "You add the time of arithmetic and of memory. A kernel loads "
        "the next numbers while it computes: the longer of the two times counts.",
        "return seconds → return max(sum(flops for flops, _ in kernels) / peak, sum(moved for _, moved in kernels) / "
        "bandwidth)": "You add up all FLOPs and all bytes, and then compare. One kernel's bytes do not move while "
        "another computes: compare for each kernel.",
        "max(computing, moving) → min(computing, moving)": "You take the shorter of the two times. The work is done "
        "when both are.",
        "max(computing, moving) → computing": "You look at FLOPs alone. A kernel that computes little still waits for "
        "its bytes.",
        "max(computing, moving) → moving": "You look at bytes alone. A large product waits for arithmetic.",
        "seconds += max(computing, moving) → seconds = max(seconds, computing, moving)": "You return the slowest "
        "kernel. They run one after the other: add them up.",
        "moved / bandwidth → 2 * moved / bandwidth": "You count each byte twice. `moved` already includes reads and "
        "writes.",
        "max(computing, moving) → max(computing, moving) if flops else 0": "In your sum a kernel without FLOPs takes "
        "no time, as if you divided FLOPs by the attainable rate. It still moves its bytes.",
        "max(computing, moving) → computing if flops > moved else moving": "You compare FLOPs with bytes, two "
        "different units. Compare the *times* that the two need.",
        "return seconds → return seconds / max(1, len(kernels))": "You return the mean of the kernels' times. They "
        "run one after the other: return the sum.",
        "max(computing, moving) → min(peak, flops / moved * bandwidth) if moved else peak": "You return the "
        "attainable FLOP/s of the kernels. Return how many seconds they take.",
        "moved / bandwidth → moved * bandwidth": "You multiply bytes by the bandwidth. Seconds are bytes divided by "
        "bytes per second.",
        "flops / peak, moved / bandwidth → flops / bandwidth, moved / peak": "You divide FLOPs by the bandwidth and "
        "bytes by the peak. It is the other way round.",
        "return seconds → return max((flops / peak for flops, _ in kernels), default=0.0) + max((moved / bandwidth for "
        "_, moved in kernels), default=0.0)": "You add the longest computing time and the longest moving time. For "
        "each kernel take the longer of its own two times, and then add up.",
        "max(computing, moving) → (computing + moving) / 2": "You take the mean of the two times. Both run at once, so "
        "the kernel takes the longer one.",
        "computing, moving = flops / peak, → computing, moving = peak / flops if flops else 0.0,": "You divide the "
        "peak by the FLOPs. Seconds are FLOPs divided by FLOPs per second.",
        "max(computing, moving) → max(computing, moving) if flops and moved else 0": "A kernel without FLOPs, or "
        "without bytes, takes no time in your sum. A copy still moves its bytes, and a kernel on the chip still "
        "computes.",
    },
)


roofline.equivalent_mutant(
    "return sum((max(flops / peak, moved / bandwidth) for flops, moved in kernels)) → "
    "return sum((max(moved / bandwidth, flops / peak) for flops, moved in kernels))",
    "The longer of two times is the same in either order.",
)
