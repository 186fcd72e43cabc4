"""The exercise on what limits an elementwise operation."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _intensity(kernels: list[list[int]], bytes_each: int) -> float:
    work = sum(operations for operations, _, _ in kernels)
    traffic = sum(reads + writes for _, reads, writes in kernels)
    return float(Fraction(work, traffic * bytes_each))


def _intensity_cases(random: Random) -> list[Case]:
    def kernel() -> list[int]:
        return [random.randint(1, 40), random.randint(1, 3), random.randint(1, 2)]

    unlike = [[50, 1, 1], [1, 3, 2]]
    return [
        case("a copy", [[0, 1, 1]], 4),
        case("the same kernel twice", [[8, 1, 1], [3, 2, 1], [8, 1, 1]], 4),
        case("several kernels", [[8, 1, 1], [2, 2, 2], [3, 3, 1]], 2),
        case("double precision", [[7, 2, 1], [0, 1, 3]], 8),
        case("numbers of one byte", [[5, 1, 2]], 1),
        *(case("one kernel", [kernel()], bytes_each) for bytes_each in (2, 4)),
        *(case("several kernels", [*unlike, *(kernel() for _ in range(count))], 2) for count in (0, 1, 4)),
    ]


elementwise_intensity = Exercise(
    "elementwise_intensity",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_intensity,
    cases=[
        case("ReLU in bf16", [[1, 1, 1]], 2),
        case("the product of gate and value in bf16", [[1, 2, 1]], 2),
        case("a GELU of 20 operations, then its backward pass of 30, in fp32", [[20, 1, 1], [30, 2, 1]], 4),
        case("the backward pass of that GELU in bf16", [[30, 2, 1]], 2),
        case("negate, a GELU, the product with a value, in bf16", [[1, 1, 1], [20, 1, 1], [1, 2, 1]], 2),
        case("a step of an optimizer, which reads three arrays and writes two, in fp32", [[10, 3, 2]], 4),
        case("square, then add, as two kernels in bf16", [[1, 1, 1], [1, 2, 1]], 2),
    ],
    hidden_cases=_intensity_cases,
    hints=[
        "For one kernel: operations / (numbers read and written × bytes of each).",
        "For several: all operations over all bytes. An average of ratios gives a different number.",
    ],
    tolerance=Tolerance(2e-7),  # a division in float32
)


@elementwise_intensity.variant
def by_columns(kernels: list[list[int]], bytes_each: int) -> float:
    work = sum(operations for operations, reads, writes in kernels)
    traffic = sum(reads + writes for operations, reads, writes in kernels)
    return work / (traffic * bytes_each)


elementwise_intensity.slips(
    by_columns,
    {
        "reads + writes → reads": "You count only what is read. The result has to be written, too.",
        " * bytes_each → ": "That is operations per number. Intensity is per byte: divide by bytes_each.",
        'work / (traffic * bytes_each) → traffic * bytes_each / work if work else float("inf")': "That is bytes per "
        "operation. Intensity is the inverse: operations per byte.",
        "sum(operations → sum(operations / (reads + writes) ;; traffic * → len(kernels) *": "You average the kernels' "
        "intensities. Add up the work, add up the bytes, divide.",
        "sum(reads + writes for operations, reads, writes in kernels) → kernels[0][1] + kernels[-1][2]": "You count "
        "only what the first kernel reads and the last one writes, as if they were fused. Between two kernels every "
        "number goes to memory and back.",
        "reads + writes → 2": "You count one read and one write for every kernel. Some read two arrays: use the "
        "numbers that are given.",
        "traffic * → traffic * 8 *": "You multiply by 8, which gives bits. Intensity is per byte.",
        "traffic * bytes_each → traffic * 2": "You count 2 bytes for every number. Here a number takes bytes_each.",
        "sum(operations → max(operations / (reads + writes) ;; traffic * bytes_each → bytes_each": "You return the "
        "largest intensity. Add up all work, and all bytes.",
        "sum(operations → min(operations / (reads + writes) ;; traffic * bytes_each → bytes_each": "You return the "
        "smallest intensity. All kernels count: all work over all bytes.",
        "sum(operations → sum(operations / (reads + writes) ;; traffic * bytes_each → bytes_each": "You add up the "
        "intensities. Add up the work, and divide by all bytes once.",
        "reads + writes → reads * bytes_each + writes ;; traffic * bytes_each → traffic": "You multiply only the reads "
        "by bytes_each. Every number that is written takes as many bytes.",
        "reads + writes → reads + writes * bytes_each ;; traffic * bytes_each → traffic": "You multiply only the "
        "writes by bytes_each. Every number that is read takes as many bytes.",
        "work / (traffic * bytes_each) → work / traffic * bytes_each": "You multiply by bytes_each. Intensity is per "
        "byte: divide by all the bytes, (reads + writes) · bytes_each.",
        "work / (traffic * bytes_each) → work // (traffic * bytes_each)": "You divide with //, which drops the "
        "fraction. Most intensities here are below 1.",
        "sum(operations → sum(operations * (reads + writes)": "You multiply the operations by the arrays of each "
        "kernel. They are counted per element already.",
        "reads + writes → reads * writes": "You multiply reads and writes. Together they are reads + writes arrays.",
        "reads + writes → writes": "You count only what is written. What a kernel reads comes from memory, too.",
        "work = → kernels = kernels[:1]\n    work =": "Only your first kernel counts.",
    },
)
