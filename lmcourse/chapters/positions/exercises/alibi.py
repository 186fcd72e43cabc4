"""The exercise on ALiBi's penalty on distance."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _penalties(slopes: Tensor, queries: int, keys: int, shift: int = 0, ahead: float = -math.inf) -> Tensor:
    """Compute the bias entry by entry. `shift` moves the queries; `ahead` is the bias of later keys."""
    first = keys - queries + shift
    rows = [[(j - i) if j <= i else ahead for j in range(keys)] for i in range(first, first + queries)]
    steps = torch.tensor(rows, dtype=torch.float64).reshape(queries, keys)
    return torch.stack([torch.where(steps > 0, ahead, steps * slope) for slope in slopes.tolist()]).to(slopes.dtype)


def _bias(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} tokens")
    return _penalties(slopes, queries, keys)


def _bias_cases(random: Random) -> list[Case]:
    slopes = torch.tensor([random.uniform(0.01, 1.0) for _ in range(random.randint(3, 6))])
    keys = random.randint(5, 9)
    three = torch.tensor([0.7, 0.1, 1 / 256])
    return [
        case("other shapes", three[:1], 1, 1),
        case("other shapes", three, 5, 5),
        case("one query at the end", three, 1, 6),
        case("some queries at the end", three, 3, 7),
        case("other precisions", three.double(), 2, 4),
        case("other precisions", _TWO.bfloat16(), 2, 3),
        case("bad input", three, 2, 1),
        case("other shapes", slopes, keys, keys),
        case("one query at the end", slopes, 1, keys),
        case("some queries at the end", slopes[:2], random.randint(2, 4), keys),
        case("bad input", slopes, keys + random.randint(1, 3), keys),
    ]


_TWO = torch.tensor([0.5, 0.25])

alibi_bias = Exercise(
    "alibi_bias",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_bias,
    cases=[
        case("one head, three tokens", torch.tensor([0.5]), 3, 3),
        case("two heads, four tokens", _TWO, 4, 4),
        case("the last two of five tokens", _TWO, 2, 5),
        edge(case("slopes in float64", _TWO.double(), 2, 3)),
        case("more queries than tokens", _TWO, 4, 3),
    ],
    hidden_cases=_bias_cases,
    hints=[
        "Which positions do the queries have? keys − queries, …, keys − 1. The keys have 0, …, keys − 1.",
        "offset = key − query, with query[:, None]: it is 0 on the diagonal of a square, negative for the past.",
        "slopes[:, None, None] * offset is the bias. Where offset > 0, .masked_fill(offset > 0, -math.inf).",
    ],
)


@alibi_bias.misconception("You hide each token from itself. Its distance is 0, and so is its bias.")
def itself_hidden(slopes: Tensor, queries: int, keys: int) -> Tensor:
    bias = _bias(slopes, queries, keys)
    return bias.masked_fill(bias == 0, -torch.inf)


@alibi_bias.misconception("You reward distance. The bias is slope · (j − i), and for the past j − i is negative.")
def far_is_better(slopes: Tensor, queries: int, keys: int) -> Tensor:
    return _bias(slopes, queries, keys).abs() * torch.where(_bias(slopes, queries, keys).isinf(), -1, 1)


@alibi_bias.misconception("Later keys are visible. In causal attention their bias is −∞.")
def future_open(slopes: Tensor, queries: int, keys: int) -> Tensor:
    _bias(slopes, queries, keys)
    offset = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
    return -(slopes[:, None, None] * offset.abs())


@alibi_bias.misconception("Later keys get the bias 0, the largest of all. They need −∞.")
def future_at_zero(slopes: Tensor, queries: int, keys: int) -> Tensor:
    return _bias(slopes, queries, keys).nan_to_num(neginf=0.0)


@alibi_bias.misconception("Your queries start at position 0. They are the last tokens of the text.")
def queries_from_zero(slopes: Tensor, queries: int, keys: int) -> Tensor:
    _bias(slopes, queries, keys)
    return _penalties(slopes, queries, keys, shift=queries - keys)


@alibi_bias.misconception("All your heads have the first slope. Each head has its own.")
def first_slope_for_all(slopes: Tensor, queries: int, keys: int) -> Tensor:
    return _bias(slopes[:1].expand(len(slopes)), queries, keys)


@alibi_bias.misconception(
    "You multiply a mask of zeros and ones by −∞, and 0 · ∞ is NaN. Put −∞ where a key is ahead: masked_fill."
)
def zero_times_infinity(slopes: Tensor, queries: int, keys: int) -> Tensor:
    bias = _bias(slopes, queries, keys)
    return bias.masked_fill(~bias.isinf(), torch.nan)


@alibi_bias.misconception("You count the token itself as one step away. Its distance is 0.")
def from_one(slopes: Tensor, queries: int, keys: int) -> Tensor:
    return _bias(slopes, queries, keys) - slopes[:, None, None]


@alibi_bias.misconception(
    "You add slope · j, the key's position. A softmax would not notice, because each row shifts as a whole. But return "
    "the bias itself: 0 for the token's own position."
)
def by_position_of_the_key(slopes: Tensor, queries: int, keys: int) -> Tensor:
    last = torch.arange(keys - queries, keys, dtype=slopes.dtype)[:, None]
    return _bias(slopes, queries, keys) + slopes[:, None, None] * last


@alibi_bias.misconception("There cannot be more queries than tokens: raise ValueError.")
def too_many_queries(slopes: Tensor, queries: int, keys: int) -> Tensor:
    return _penalties(slopes, queries, keys)


@alibi_bias.variant
def number_by_number(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if keys < queries:
        raise ValueError("there are more queries than keys")
    bias = torch.full((len(slopes), queries, keys), float("-inf"), dtype=slopes.dtype)
    for head, slope in enumerate(slopes.tolist()):
        for row in range(queries):
            last = keys - queries + row
            for key in range(last + 1):
                bias[head, row, key] = -slope * (last - key)
    return bias


@alibi_bias.variant
def the_last_rows_of_a_square(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if queries > keys:
        raise ValueError("there are more queries than keys")
    place = torch.arange(keys, dtype=slopes.dtype)
    future = torch.full((keys, keys), -torch.inf, dtype=slopes.dtype).triu(1)
    square = torch.einsum("h,ij->hij", slopes, (place - place[:, None]).tril()) + future
    return square[:, keys - queries :]


@alibi_bias.variant
def infinite_first(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if queries > keys:
        raise ValueError("there are more queries than keys")
    back = torch.arange(keys - queries, keys).view(-1, 1) - torch.arange(keys).view(1, -1)
    return (-slopes.view(-1, 1, 1) * torch.where(back < 0, math.inf, back)).to(slopes.dtype)


@alibi_bias.variant
def by_numpy(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if queries > keys:
        raise ValueError("there are more queries than keys")
    i, j = np.ogrid[keys - queries : keys, 0:keys]
    bias = np.where(j > i, -np.inf, np.multiply.outer(slopes.double().numpy(), j - i))
    return torch.tensor(bias, dtype=slopes.dtype)
