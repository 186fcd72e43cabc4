"""The exercise on ALiBi's penalty on distance."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _bias(slopes: Tensor, queries: int, keys: int) -> Tensor:
    """Compute the bias entry by entry."""
    if queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} tokens")
    steps = [[j - i if j <= i else -math.inf for j in range(keys)] for i in range(keys - queries, keys)]
    return (slopes.double()[:, None, None] * torch.tensor(steps, dtype=torch.float64)).to(slopes.dtype)


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
        edge(case("slopes in bfloat16", _TWO.bfloat16(), 2, 3)),
        edge(case("slopes in bfloat16, 300 tokens", torch.tensor([0.5]).bfloat16(), 1, 300)),
        case("more queries than tokens", _TWO, 4, 3),
    ],
    hidden_cases=_bias_cases,
    hints=[
        "Which positions do the queries have? keys − queries, …, keys − 1. The keys have 0, …, keys − 1.",
        "offset = key − query, with query[:, None]: it is 0 on the diagonal of a square, negative for the past.",
        "slopes[:, None, None] * offset is the bias. Where offset > 0, .masked_fill(offset > 0, -math.inf).",
    ],
)


@alibi_bias.variant
def offset_then_mask(slopes: Tensor, queries: int, keys: int) -> Tensor:
    if queries > keys:
        raise ValueError("there are more queries than keys")
    query, key = torch.arange(keys - queries, keys), torch.arange(keys)
    offset = key - query[:, None]
    bias = slopes[:, None, None] * offset
    return bias.masked_fill(offset > 0, -math.inf)


alibi_bias.slips(
    offset_then_mask,
    {
        "offset = key - query[:, None] → offset = key.to(slopes) - query[:, None].to(slopes)": "Your positions are in "
        "the dtype of the slopes, and bf16 rounds 257 to 256: subtract whole numbers, then convert the distance.",
        "offset > 0 → offset >= 0": "You hide each token from itself. Its distance is 0, and so is its bias.",
        "* offset → * -offset": "You reward distance. The bias is slope · (j − i), and for the past j − i is negative.",
        "* offset → * -offset.abs() ;; .masked_fill(offset > 0, -math.inf) → ": "Later keys are visible. In causal "
        "attention their bias is −∞.",
        ".masked_fill(offset > 0, -math.inf) → ": "You do not hide later keys: theirs is a positive bias, the largest "
        "of all. Keys ahead of the query need −∞.",
        "-math.inf → -1e9 || -math.inf → torch.finfo(slopes.dtype).min": "Later keys get a finite number. Keys ahead "
        "of the query need −∞, -math.inf.",
        "-math.inf → math.inf": "Later keys get +∞, so they take all the attention. They need −∞.",
        "offset > 0 → offset < 0": "You hide the past and show the future. Keys ahead of the query, j > i, need −∞.",
        "offset > 0 → torch.ones(queries, keys).triu(1) > 0": "Your distances are right, but your mask takes the "
        "queries for the first tokens. They are the last: query i sees keys − queries + i + 1 keys.",
        "-math.inf → 0.0": "Later keys get the bias 0, the largest of all. They need −∞.",
        "torch.arange(keys - queries, keys) → torch.arange(queries)": "Your queries start at position 0. They are the "
        "last tokens of the text.",
        "slopes[:, None, None] → slopes[:1].expand_as(slopes)[:, None, None]": "All your heads have the first slope. "
        "Each head has its own.",
        "bias.masked_fill(offset > 0, -math.inf) → bias - (offset > 0).to(bias.dtype) * math.inf": "You multiply a "
        "mask of zeros and ones by −∞, and 0 · ∞ is NaN. Put −∞ where a key is ahead: masked_fill.",
        "torch.arange(keys - queries, keys) → torch.arange(keys - queries + 1, keys + 1) || torch.arange(keys - "
        "queries, keys) → torch.arange(keys - queries - 1, keys - 1)": "Your queries are off by one position. The last "
        "one is at keys − 1, like the last key.",
        "key - query[:, None] → query - key[:, None]": "Your rows belong to keys and your columns to queries, which "
        "shows only if their numbers differ. Rows are queries.",
        "bias.masked_fill(offset > 0, -math.inf) → bias.masked_fill(offset > 0, -math.inf).mT": "Your rows are keys "
        "and your columns queries. The shape is (h, queries, keys).",
        "* offset → * (offset - 1)": "You count the token itself as one step away. Its distance is 0.",
        "* offset → * key": "You add slope · j, the key's position. A softmax would not notice, because each row "
        "shifts as a whole. But return the bias itself: 0 for the token's own position.",
        'if queries > keys:\n        raise ValueError("there are more queries than keys")\n    query → query': "There "
        "cannot be more queries than tokens: raise ValueError.",
    },
)
