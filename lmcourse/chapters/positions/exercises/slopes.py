"""The exercise on ALiBi's slopes, one per head."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _list(heads: int) -> list[float]:
    """Compute like the authors' code: one geometric series for a power of two; other numbers of heads add slopes of the
    next power of two."""
    power = 1 << (heads.bit_length() - 1)
    if heads != power:
        return _list(power) + _list(2 * power)[::2][: heads - power]
    ratio: float = 2.0 ** (-8 / heads)
    return [ratio**head for head in range(1, heads + 1)]


def _slopes(heads: int) -> Tensor:
    return torch.tensor(_list(heads))


def _slope_cases(random: Random) -> list[Case]:
    return [
        *(case("other powers of two", heads) for heads in (2, 16, 64)),
        *(case("few heads", heads) for heads in (3, 5, 7)),
        *(case("other numbers", heads) for heads in (20, 112)),
        case("other powers of two", 2 ** random.choice([1, 5, 6, 7])),
        case("other numbers", random.randint(17, 31)),
        case("other numbers", random.randint(33, 120)),
    ]


alibi_slopes = Exercise(
    "alibi_slopes",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_slopes,
    # A hundred products in fp32, one after the other, add up to a hundred rounding errors.
    tolerance=Tolerance(1e-5),
    cases=[
        case("eight heads", 8),
        case("one head", 1),
        case("four heads", 4),
        case("twelve heads", 12),
        case("six heads", 6),
    ],
    hidden_cases=_slope_cases,
    hints=[
        "For a power of two: 2 ** (-8 / heads * torch.arange(1, heads + 1)).",
        "Otherwise find the largest power of two below: 2 ** math.floor(math.log2(heads)). Its slopes come first.",
        "The missing slopes come from the series for twice as many heads: its first, third, fifth … slope.",
    ],
)


def _between(heads: int, borrowed: list[float]) -> Tensor:
    power = 1 << (heads.bit_length() - 1)
    return torch.tensor(_list(power) + borrowed[: heads - power])


def _next(heads: int) -> list[float]:
    """The slopes for twice the largest power of two up to `heads`."""
    return _list(2 << (heads.bit_length() - 1))


@alibi_slopes.misconception(
    "You use 2^(−8h/n) for every n. That is right for powers of two; other numbers follow the rule in the text."
)
def one_formula_for_all(heads: int) -> Tensor:
    return torch.tensor([2.0 ** (-8 / heads * head) for head in range(1, heads + 1)])


@alibi_slopes.misconception("Your first slope is 1. The series starts at its own ratio, 2^(−8/n).")
def from_zero(heads: int) -> Tensor:
    ratio = 2.0 ** (-8 / (1 << (heads.bit_length() - 1)))
    return torch.tensor([slope / ratio for slope in _list(heads)])


@alibi_slopes.misconception(
    "Both of your series begin at 1. Each begins at its own ratio, so their exponents count from 1, not from 0."
)
def both_series_from_zero(heads: int) -> Tensor:
    power = 1 << (heads.bit_length() - 1)
    finer = [2.0 ** (-4 * head / power) for head in range(2 * power)]
    return torch.tensor([2.0 ** (-8 * head / power) for head in range(power)] + finer[::2][: heads - power])


@alibi_slopes.misconception("Your slopes increase. The first head is the steepest, and the series decreases to 2^−8.")
def going_up(heads: int) -> Tensor:
    return _slopes(heads).flip(0)


@alibi_slopes.misconception(
    "The slopes that you add are in your list already: they are the second, fourth, … of the larger series. Take the "
    "first, third, … slope."
)
def the_ones_that_are_there(heads: int) -> Tensor:
    return _between(heads, _next(heads)[1::2])


@alibi_slopes.misconception("You borrow the first slopes of the larger series. Take every other one of them.")
def the_first_of_the_larger(heads: int) -> Tensor:
    return _between(heads, _next(heads))


@alibi_slopes.misconception("You cut off the series of the next larger power of two: no slope is as flat as 2^−8.")
def larger_series_cut_off(heads: int) -> Tensor:
    return torch.tensor(_next(heads)[:heads]) if heads & (heads - 1) else _slopes(heads)


@alibi_slopes.misconception(
    "You continue the series beyond 2^−8. Take the missing slopes from between them, from a finer series."
)
def series_continued(heads: int) -> Tensor:
    power = 1 << (heads.bit_length() - 1)
    return torch.tensor([2.0 ** (-8 / power * head) for head in range(1, heads + 1)])


@alibi_slopes.misconception("You always halve from head to head. The ratio is 2^(−8/n), which is ½ only for n = 8.")
def always_halved(heads: int) -> Tensor:
    return torch.tensor([0.5**head for head in range(1, heads + 1)])


@alibi_slopes.misconception("You sort the slopes. The borrowed ones are appended: weights were trained in that order.")
def sorted_slopes(heads: int) -> Tensor:
    return _slopes(heads).sort(descending=True).values


@alibi_slopes.variant
def as_the_authors_wrote_it(heads: int) -> Tensor:
    def power_of_two(n: int) -> list[float]:
        start = 2.0 ** (-(2.0 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    def slopes(n: int) -> list[float]:
        if math.log2(n).is_integer():
            return power_of_two(n)
        closest = 2 ** math.floor(math.log2(n))
        return power_of_two(closest) + slopes(2 * closest)[0::2][: n - closest]

    return torch.tensor(slopes(heads))


@alibi_slopes.variant
def head_by_head(heads: int) -> Tensor:
    power = 1
    while 2 * power <= heads:
        power *= 2
    slopes = torch.empty(heads)
    for head in range(heads):
        exponent = -8 * (head + 1) / power if head < power else -8 * (2 * (head - power) + 1) / (2 * power)
        slopes[head] = 2**exponent
    return slopes


@alibi_slopes.variant
def running_product(heads: int) -> Tensor:
    power = 1 << (heads.bit_length() - 1)
    series = torch.full((power,), 2.0 ** (-8 / power)).cumprod(0)
    finer = torch.full((2 * power,), 2.0 ** (-4 / power)).cumprod(0)
    return torch.cat([series, finer[0::2]])[:heads]


@alibi_slopes.variant
def by_numpy_in_doubles(heads: int) -> Tensor:
    power = 2 ** int(np.floor(np.log2(heads)))
    steps = np.concatenate([np.arange(2, 2 * power + 1, 2), np.arange(1, 2 * power, 2)])[:heads]
    return torch.from_numpy(np.exp2(-4 * steps / power)).float()
