"""The exercise on a block of keys in attention that never holds all scores."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

State = tuple[Tensor, Tensor, Tensor]


def _number_by_number(top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor) -> State:
    """Update each query separately, with Python floats and exact sums."""
    rows: list[tuple[list[float], list[float], list[float]]] = []
    for query, row in enumerate(scores.tolist()):
        highest = max(top[query].item(), *row)
        before = _weight(top[query].item(), highest)
        weights = [_weight(score, highest) for score in row]
        columns = zip(numerator[query].tolist(), v.T.tolist(), strict=True)
        sums = [
            math.fsum([before * old, *(w * x for w, x in zip(weights, column, strict=True))]) for old, column in columns
        ]
        rows.append(([highest], [math.fsum([before * total[query].item(), *weights])], sums))
    new_top, new_total, new_numerator = (torch.tensor(part, dtype=scores.dtype) for part in zip(*rows, strict=True))
    return new_top, new_total, new_numerator


def _weight(score: float, highest: float) -> float:
    return 0.0 if score == -math.inf else math.exp(score - highest)


def _start(s: int, dv: int) -> State:
    return torch.full((s, 1), -math.inf), torch.zeros(s, 1), torch.zeros(s, dv)


def _later(random: Random, s: int, t: int, dv: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Return the running state after a random block (maximum, total, sum) and the next block's scores and values."""
    total = normal(random, s, 1, dtype=dtype).square() + 1
    seen = normal(random, s, 1, dtype=dtype), total, normal(random, s, dv, dtype=dtype)
    return *seen, normal(random, s, t, dtype=dtype), normal(random, t, dv, dtype=dtype)


def _column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)[:, None]


def _cases(random: Random) -> list[Case]:
    seen = Random(7)
    some_hidden = _later(seen, 3, 3, 2)
    some_hidden[3][0, 1] = some_hidden[3][1, 0] = some_hidden[3][2] = -math.inf
    began = _column(-math.inf, 0.5), _column(0.0, 1.5), torch.tensor([[0.0, 0.0], [1.0, -2.0]])
    one_began = *began, torch.tensor([[-math.inf, -math.inf], [-math.inf, 1.0]]), normal(seen, 2, 2)
    high = _column(990.0, -1000.0, 0.0), _column(2.0, 1.0, 3.0), normal(seen, 3, 2)
    low = torch.tensor([[1000.0, 1001.0], [-1001.0, -1003.0], [-2000.0, 300.0]])
    s, t, dv = (random.randint(2, 5) for _ in range(3))
    return [
        case("later blocks", *_later(seen, 4, 3, 2)),
        case("later blocks", *_later(seen, 3, 3, 3)),
        case("one key", *_later(seen, 3, 1, 2)),
        case("one query", *_later(seen, 1, 4, 3)),
        case("the first block", *_start(3, 2), normal(seen, 3, 4), normal(seen, 4, 2)),
        case("hidden keys", *some_hidden),
        case("hidden keys", *one_began),
        case("large and small scores", *high, low, normal(seen, 2, 2)),
        case("double precision", *_later(seen, 2, 3, 4, torch.float64)),
        case("later blocks", *_later(random, s, t + 1, dv)),
        case("the first block", *_start(s, dv), normal(random, s, t), normal(random, t, dv)),
    ]


_FIXED = Random(5)

block_update = Exercise(
    "block_update",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_number_by_number,
    cases=[
        case("the first block", *_start(1, 1), torch.tensor([[0.0, 1.0]]), _column(10.0, 20.0)),
        case("a larger score comes", *(_column(x) for x in (1.0, 1.5, 4.0)), torch.tensor([[3.0, 2.0]]), _column(1, 2)),
        case("none is larger", *(_column(x) for x in (3.0, 1.5, 4.0)), torch.tensor([[2.0, 1.0]]), _column(1, 2)),
        case("two queries, three keys", *_later(_FIXED, 2, 3, 2)),
        case("scores of 100", *_start(1, 1), torch.tensor([[100.0, 99.0]]), _column(10.0, 20.0)),
        case("nothing to see yet", *_start(1, 1), torch.full((1, 2), -math.inf), _column(10.0, 20.0)),
    ],
    hidden_cases=_cases,
    hints=[
        "Compute in this order: the new m, then the factor for the old sums, then the weights of the new keys.",
        "new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True)); the old sums are multiplied by "
        "(top - new_top).exp(), and the new scores become (scores - new_top).exp().",
        "−∞ − (−∞) is NaN. Where new_top is −∞, subtract 0 instead: new_top.masked_fill(new_top == -torch.inf, 0.0). "
        "Then e^−∞ is 0, as it should be.",
    ],
)


@block_update.variant
def the_old_sums_shrink(
    top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
    base = new_top.masked_fill(new_top == -torch.inf, 0.0)
    shrink = (top - base).exp()
    weights = (scores - base).exp()
    new_total = total * shrink + weights.sum(dim=-1, keepdim=True)
    new_numerator = numerator * shrink + weights @ v
    return new_top, new_total, new_numerator


block_update.slips(
    the_old_sums_shrink,
    {
        "(top - base).exp() → 1.0": "The old sums are not shrunk. They were taken with the old m; a larger one makes "
        "them smaller.",
        "numerator * shrink → numerator": "Only the denominator is shrunk. The sum of the values was taken with the "
        "old m as well.",
        "total * shrink → total": "Only the sum of the values is shrunk. The denominator was taken with the old m as "
        "well.",
        "(top - base) → (new_top - top)": "Your factor is upside down: with a larger m the old sums must shrink, not "
        "grow.",
        "torch.maximum(top, scores.amax(dim=-1, keepdim=True)) → scores.amax(dim=-1, keepdim=True)": "Your m is the "
        "largest score of this block. It must be the largest of all scores so far.",
        "(scores - base).exp() → (scores - scores.amax(dim=-1, keepdim=True)).exp().nan_to_num()": "You subtract this "
        "block's own largest score from its scores. Both sums need the same m, the largest of all so far.",
        "(scores - base) → (scores - top)": "You subtract the old m from the new scores. Subtract the new m, as for "
        "the old sums: the old m is −∞ in the first block, and later it may be too small.",
        "new_total, new_numerator → new_total, new_numerator / new_total": "You divide by the denominator in each "
        "block. Keep both sums undivided until the last block is done.",
        "scores.amax(dim=-1, keepdim=True)) → scores).amax().expand_as(top)": "You use one m for all queries. Each row "
        "has its own largest score.",
        "new_top.masked_fill(new_top == -torch.inf, 0.0) → new_top": "Where a query has seen no key, you subtract −∞ "
        "from −∞, which is NaN. The query's three numbers should stay as they are.",
        "(top - base).exp() → 1.0 ;; (scores - base) → scores": "The weights are made without subtracting m: e^100 is "
        "infinite in float32. Subtract m from each score first.",
        "(scores - base).exp() → scores.softmax(dim=-1)": "You take a separate softmax of each block, so each block "
        "counts as 1, however well its keys match.",
        "(top, scores.amax(dim=-1, keepdim=True)) → (top, scores.amax(dim=-1)) ;; new_top.masked_fill(new_top == "
        "-torch.inf, 0.0) → new_top ;; weights.sum(dim=-1, keepdim=True) → weights.sum(dim=-1)": "Your largest scores "
        "have lost an axis, so a column of s meets a row of s and becomes s × s: keepdim=True.",
        "torch.maximum(top, scores.amax(dim=-1, keepdim=True)) → torch.where(top == -torch.inf, scores.amax(dim=-1, "
        "keepdim=True), top)": "Your m stays what it was. A larger score in a later block must raise it; both sums "
        "then shrink to fit.",
        "return new_top → return top": "The sums are right, but you return the old m. Return the largest score so far, "
        "since the next block needs it.",
        "new_total, new_numerator → new_numerator, new_total": "The second and the third result are swapped: the "
        "denominator, of one column, comes before the sum of the values.",
    },
)


@block_update.variant
def key_by_key(
    top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    top, total, numerator = top.clone(), total.clone(), numerator.clone()
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if scores[i, j] == float("-inf"):
                continue
            if scores[i, j] > top[i, 0]:
                factor = torch.exp(top[i, 0] - scores[i, j])
                total[i] *= factor
                numerator[i] *= factor
                top[i, 0] = scores[i, j]
            weight = torch.exp(scores[i, j] - top[i, 0])
            total[i] += weight
            numerator[i] += weight * v[j]
    return top, total, numerator


@block_update.variant
def by_numpy(top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, z, n, x, values = (part.double().numpy() for part in (top, total, numerator, scores, v))
    highest = np.maximum(m, x.max(axis=1, keepdims=True))
    base = np.where(np.isinf(highest), 0.0, highest)
    weights, factor = np.exp(x - base), np.exp(m - base)
    parts = highest, factor * z + weights.sum(1, keepdims=True), factor * n + weights @ values
    new_top, new_total, new_numerator = (torch.tensor(part, dtype=scores.dtype) for part in parts)
    return new_top, new_total, new_numerator


@block_update.variant
def merged_with_the_block_on_its_own(
    top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    block_top = torch.amax(scores, -1, keepdim=True)
    block = torch.nan_to_num(torch.exp(scores - block_top))
    new_top = torch.where(block_top > top, block_top, top)
    old_factor = torch.nan_to_num(torch.exp(top - new_top))
    new_factor = torch.nan_to_num(torch.exp(block_top - new_top))
    return (
        new_top,
        old_factor * total + new_factor * block.sum(-1, keepdim=True),
        old_factor * numerator + new_factor * (block @ v),
    )


block_update.equivalent_mutant(
    "base = new_top.masked_fill(new_top == -torch.inf, 0.0) → base = new_top.masked_fill(new_top == -torch.inf, 1.0)",
    "Any finite number will do: −∞ less it is −∞, and the weights are 0.",
)
