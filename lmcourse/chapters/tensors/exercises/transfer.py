"""The exercise on the time a tensor takes over a bus."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _seconds(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    """In exact fractions, with the number of elements that a tensor without memory has."""
    elements = torch.empty(shape, device="meta").numel()
    return float(Fraction(elements * bytes_each) / Fraction(gigabytes_per_second) / 10**9)


def _hidden(random: Random) -> list[Case]:
    shape = [random.randint(1, 5000) for _ in range(3)]
    return [
        case("other shapes", [4096], 4, 64.0),
        case("other shapes", [2, 3, 5, 7], 2, 0.5),
        case("other shapes", [32000, 4096], 2, 900.0),
        case("one number", [], 8, 25.0),
        case("nothing", [5, 0, 3], 4, 32.0),
        case("a slow link", [1000, 1000], 4, 0.0125),
        case("a large tensor", [100000, 100000, 100], 4, 3350.0),
        case("other shapes", shape, random.choice([1, 2, 4, 8]), random.uniform(1, 1000)),
        case("a slow link", shape[:2], random.choice([1, 2, 4, 8]), random.uniform(0.001, 0.1)),
    ]


transfer_seconds = Exercise(
    "transfer_seconds",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_seconds,
    cases=[
        case("a matrix of GPT-3 over PCIe 4.0", [12288, 49152], 4, 32.0),
        case("a thousand halves", [10, 100], 2, 1.0),
        case("no number at all", [0, 7], 4, 32.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "How many elements? The product of all sizes. How many bytes? Times `bytes_each`.",
        "A gigabyte per second is 10⁹ bytes per second.",
    ],
    forbid=["torch"],
    tolerance=Tolerance(1e-12),
)


@transfer_seconds.misconception("You count 2³⁰ bytes in a GB. Data sheets of links count in powers of ten: 10⁹.")
def gibibytes(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return math.prod(shape) * bytes_each / (gigabytes_per_second * 2**30)


@transfer_seconds.misconception("You count bits. The link is given in gigabytes, and so is the tensor.")
def bits(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return 8 * _seconds(shape, bytes_each, gigabytes_per_second)


@transfer_seconds.misconception("You move numbers as if each had one byte: `bytes_each` is missing.")
def one_byte_each(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return _seconds(shape, 1, gigabytes_per_second)


@transfer_seconds.misconception("You move it there and back. It goes one way.")
def both_ways(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return 2 * _seconds(shape, bytes_each, gigabytes_per_second)


@transfer_seconds.misconception("That is milliseconds; seconds are asked for.")
def milliseconds(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return 1000 * _seconds(shape, bytes_each, gigabytes_per_second)


@transfer_seconds.misconception("You add the sizes up. A tensor has as many elements as their product.")
def sizes_added(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return _seconds([sum(shape)], bytes_each, gigabytes_per_second)


@transfer_seconds.misconception("You divide the speed by the bytes. More bytes take more time, not less.")
def upside_down(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    count = math.prod(shape) * bytes_each
    return gigabytes_per_second * 1e9 / count if count else math.inf


@transfer_seconds.variant
def in_gigabytes(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    gigabytes = math.prod(shape) * bytes_each / 10**9
    return gigabytes / gigabytes_per_second


@transfer_seconds.variant
def size_after_size(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    seconds = bytes_each / gigabytes_per_second * 1e-9
    for size in shape:
        seconds *= size
    return seconds


@transfer_seconds.variant
def folded(shape: list[int], bytes_each: int, gigabytes_per_second: float) -> float:
    return reduce(lambda a, b: a * b, shape, 1) * (bytes_each / (1e9 * gigabytes_per_second))
