"""The exercise on what limits an elementwise operation."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Kernels = list[list[int]]


def _intensity(kernels: Kernels, bytes_each: int) -> float:
    work = sum(operations for operations, _, _ in kernels)
    traffic = sum(reads + writes for _, reads, writes in kernels)
    return float(Fraction(work, traffic * bytes_each))


def _intensity_cases(random: Random) -> list[Case]:
    def kernel() -> list[int]:
        return [random.randint(1, 40), random.randint(1, 3), random.randint(1, 2)]

    cases = [case("one kernel", [kernel()], random.choice([2, 4])) for _ in range(3)]
    cases += [case("several kernels", [kernel() for _ in range(random.randint(2, 6))], 2) for _ in range(3)]
    return [*cases, case("double precision", [kernel(), kernel()], 8), case("a copy", [[0, 1, 1]], 4)]


elementwise_intensity = Exercise(
    "elementwise_intensity",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_intensity,
    cases=[
        case("ReLU in bf16", [[1, 1, 1]], 2),
        case("the product of gate and value in bf16", [[1, 2, 1]], 2),
        case("a GELU of 20 operations in fp32", [[20, 1, 1]], 4),
        case("the backward pass of that GELU in bf16", [[30, 2, 1]], 2),
        case("square, then add, as two kernels in bf16", [[1, 1, 1], [1, 2, 1]], 2),
    ],
    hidden_cases=_intensity_cases,
    hints=[
        "For one kernel: operations / (numbers read and written × bytes of each).",
        "For several: all operations over all bytes. An average of ratios would be something else.",
    ],
    forbid=["torch", "numpy"],
)


@elementwise_intensity.misconception("You count what is read only. The result has to be written, too.")
def reads_only(kernels: Kernels, bytes_each: int) -> float:
    return sum(k[0] for k in kernels) / (sum(k[1] for k in kernels) * bytes_each)


@elementwise_intensity.misconception("That is operations per number. Intensity is per byte: divide by bytes_each.")
def per_number(kernels: Kernels, bytes_each: int) -> float:
    return _intensity(kernels, 1)


@elementwise_intensity.misconception("That is bytes per operation, upside down. Intensity is work over traffic.")
def upside_down(kernels: Kernels, bytes_each: int) -> float:
    intensity = _intensity(kernels, bytes_each)
    return 1 / intensity if intensity else float("inf")


@elementwise_intensity.misconception("You average the kernels' intensities. Add up the work, add up the bytes, divide.")
def average_of_ratios(kernels: Kernels, bytes_each: int) -> float:
    return sum(_intensity([kernel], bytes_each) for kernel in kernels) / len(kernels)


@elementwise_intensity.misconception(
    "You count one reading and one writing for all kernels together, as if they were fused. Between two kernels every "
    "number goes to memory and back."
)
def as_if_fused(kernels: Kernels, bytes_each: int) -> float:
    return sum(k[0] for k in kernels) / ((kernels[0][1] + kernels[-1][2]) * bytes_each)


@elementwise_intensity.misconception("You multiply by 8: these are bits. Intensity is per byte.")
def per_bit(kernels: Kernels, bytes_each: int) -> float:
    return _intensity(kernels, 8 * bytes_each)
