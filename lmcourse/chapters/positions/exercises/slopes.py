"""The exercise on ALiBi's slopes, one per head."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _slopes(heads: int) -> Tensor:
    """Compute like the authors' code: one geometric series for a power of two; other numbers of heads add slopes of the
    next power of two."""
    power = 1 << (heads.bit_length() - 1)
    if heads != power:
        return torch.cat([_slopes(power), _slopes(2 * power)[::2][: heads - power]])
    return torch.tensor([2.0 ** (-8 * head / heads) for head in range(1, heads + 1)])


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
        case("seven heads", 7),
    ],
    hidden_cases=_slope_cases,
    hints=[
        "For a power of two: 2 ** (-8 / heads * torch.arange(1, heads + 1)).",
        "Otherwise find the largest power of two below: 2 ** math.floor(math.log2(heads)). Its slopes come first.",
        "The missing slopes come from the series for twice as many heads: its first, third, fifth … slope.",
    ],
)


@alibi_slopes.variant
def running_product(heads: int) -> Tensor:
    power = 1 << (heads.bit_length() - 1)
    series = torch.full((power,), 2.0 ** (-8 / power)).cumprod(0)
    finer = torch.full((2 * power,), 2.0 ** (-4 / power)).cumprod(0)
    return torch.cat([series, finer[0::2]])[:heads]


@alibi_slopes.variant
def two_series(heads: int) -> Tensor:
    power = 2 ** math.floor(math.log2(heads))
    series = [2.0 ** (-8 * head / power) for head in range(1, power + 1)]
    finer = [2.0 ** (-4 * head / power) for head in range(1, 2 * power + 1)]
    return torch.tensor(series + finer[::2][: heads - power])


alibi_slopes.slips(
    two_series,
    {
        "2 ** math.floor(math.log2(heads)) → heads": "You use 2^(−8h/n) for every n. That is right for powers of two; "
        "other numbers follow the rule in the text.",
        "[: heads - power]) → [: heads - power]) / series[0]": "Your first slope is 1. The series starts at its own "
        "ratio, 2^(−8/n).",
        "range(1, power + 1) → range(power) ;; range(1, 2 * power + 1) → range(2 * power)": "Both of your series begin "
        "at 1. Each begins at its own ratio, so their exponents count from 1, not from 0.",
        "[: heads - power]) → [: heads - power]).flip(0)": "Your slopes increase. The first head is the steepest, and "
        "the series decreases to 2^−8.",
        "finer[::2] → finer[1::2]": "The slopes that you add are in your list already: they are the second, fourth, … "
        "of the larger series. Take the first, third, … slope.",
        "finer[::2] → finer": "You borrow the first slopes of the larger series. Take every other one of them.",
        "series + finer[::2][: heads - power] → finer[:heads] if heads > power else series": "You cut off the series "
        "of the next larger power of two: no slope is as flat as 2^−8.",
        "range(1, power + 1) → range(1, heads + 1) ;;  + finer[::2][: heads - power] → ": "You continue the series "
        "beyond 2^−8. Take the missing slopes from between them, from a finer series.",
        "series + finer[::2][: heads - power] → [0.5**head for head in range(1, heads + 1)]": "You always halve from "
        "head to head. The ratio is 2^(−8/n), which is ½ only for n = 8.",
        "[: heads - power]) → [: heads - power]).sort(descending=True).values": "You sort the slopes. The borrowed "
        "ones are appended: weights were trained in that order.",
    },
)
