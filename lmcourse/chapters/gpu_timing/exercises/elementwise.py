"""The exercise on the intensity of element-wise operations, one by one and fused."""

from __future__ import annotations

import statistics
from fractions import Fraction
from random import Random

import torch

from lmcourse.accounting.latency import elementwise_intensity
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _by_the_course(operations: list[int], size: int, fused: bool) -> float:
    """Fused: one kernel of the package. Else all work over all bytes, in exact fractions."""
    if not operations:
        raise ValueError("no operations, no intensity")
    if fused:
        return elementwise_intensity(sum(operations)) * 2 / size  # the package's bf16 has two bytes
    return float(Fraction(sum(operations), sum(2 * size for _ in operations)))


def _cases(random: Random) -> list[Case]:
    def chain(length: int) -> list[int]:
        return [random.randint(2, 30) for _ in range(length)]

    return [
        case("a copy in the chain", [0, 5, 3], 4, False),
        case("a copy in the chain", [0, 5, 3], 4, True),
        case("copies alone", [0, 0], 2, False),
        case("a single operation", [7], 1, True),
        case("a single operation", [7], 1, False),
        case("nothing to do", [], 4, True),
        *(
            case("other chains", chain(length), size, fused)
            for length, size in ((2, 2), (5, 4))
            for fused in (False, True)
        ),
    ]


chain_intensity = Exercise(
    "chain_intensity",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_by_the_course,
    cases=[
        case("ReLU in bf16", [1], 2, False),
        case("GELU in bf16", [20], 2, False),
        case("scale, add, GELU", [1, 1, 20], 2, False),
        case("scale, add, GELU, fused", [1, 1, 20], 2, True),
        case("fused in fp32", [1, 3], 4, True),
        case("nothing", [], 2, False),
    ],
    tolerance=Tolerance(1e-6),  # float32 is enough
    hidden_cases=_cases,
    hints=[
        "How often does each number cross the bus? Every kernel reads it once and writes it once.",
        "Fused there is one kernel, else one per operation. Each moves 2·size bytes per number.",
        "sum(operations) divided by 2·size, or by 2·size·len(operations). No operations: ValueError.",
    ],
)


@chain_intensity.variant
def work_and_bytes_in_a_loop(operations: list[int], size: int, fused: bool) -> float:
    work = moved = 0
    for number, step in enumerate(operations):
        work += step
        if number == 0 or not fused:
            moved += size + size
    if not moved:
        raise ValueError
    return work / moved


@chain_intensity.variant
def mean_of_the_kernels(operations: list[int], size: int, fused: bool) -> float:
    kernels = [sum(operations)] if fused else operations
    return sum(kernels) * 0.5 / size / len(kernels) if operations else statistics.mean(operations)


@chain_intensity.variant
def in_single_precision(operations: list[int], size: int, fused: bool) -> torch.Tensor:
    if len(operations) == 0:
        raise ValueError("empty chain")
    work = torch.tensor(operations, dtype=torch.float32)
    return (work.sum() if fused else work.mean()) / size / 2


@chain_intensity.misconception(
    "You count each number once, C/p, as a set of notes does. It is read and written: C/(2p)."
)
def written_for_free(operations: list[int], size: int, fused: bool) -> float:
    return 2 * _by_the_course(operations, size, fused)


@chain_intensity.misconception(
    "Fused or not gives the same in yours. Every kernel of its own reads and writes all numbers again."
)
def always_fused(operations: list[int], size: int, fused: bool) -> float:
    return _by_the_course(operations, size, True)


@chain_intensity.misconception("You leave out the gain of fusion: a fused kernel moves each number only twice.")
def never_fused(operations: list[int], size: int, fused: bool) -> float:
    return _by_the_course(operations, size, False)


@chain_intensity.misconception(
    "You add up the intensities of the kernels. Intensities do not add: divide all FLOPs by all bytes."
)
def sum_of_intensities(operations: list[int], size: int, fused: bool) -> float:
    _by_the_course(operations, size, fused)
    return sum(operations) / (2 * size) * (len(operations) if fused else 1)


@chain_intensity.misconception("You count operations per number, not per byte. Divide by the bytes of a number.")
def per_number(operations: list[int], size: int, fused: bool) -> float:
    return _by_the_course(operations, size, fused) * size


@chain_intensity.misconception("That is bytes per FLOP. Intensity is FLOPs per byte.")
def upside_down(operations: list[int], size: int, fused: bool) -> float:
    return 1 / _by_the_course(operations, size, fused)


@chain_intensity.misconception("You count kernels, not operations: a GELU does some twenty on each number.")
def one_each(operations: list[int], size: int, fused: bool) -> float:
    return _by_the_course([1 for _ in operations], size, fused)


@chain_intensity.misconception("With no operations there is no intensity: raise ValueError, do not return 0.")
def zero_for_nothing(operations: list[int], size: int, fused: bool) -> float:
    return _by_the_course(operations, size, fused) if operations else 0.0
