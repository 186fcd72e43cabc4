"""The exercise on a mask with far keys at regular distances."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _strided(length: int, stride: int) -> Tensor:
    """Row by row: the last `stride` tokens, and then every stride-th further back."""
    seen = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        seen[query, max(0, query - stride + 1) : query + 1] = True
        seen[query, query % stride : query + 1 : stride] = True
    return seen


def _strided_cases(random: Random) -> list[Case]:
    stride = random.randint(2, 4)
    return [
        case("other sizes", 11, 4),
        case("other sizes", 9, 2),
        case("a long text", 50, 7),
        case("a stride of one", 5, 1),
        case("a stride as long as the text", 6, 6),
        case("a stride as long as the text", 6, 5),
        case("one token", 1, 3),
        case("other sizes", random.randint(9, 14), stride),
        case("other sizes", random.randint(15, 20), stride + 1),
        case("a long text", random.randint(40, 60), random.randint(5, 7)),
        # A mask that sees everything is right in several cases: no two of them have one length, by luck or otherwise.
        case("a stride of one", random.choice([3, 7]), 1),
        case("a stride longer than the text", random.choice([4, 8]), random.randint(9, 11)),
    ]


strided_mask = Exercise(
    "strided_mask",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_strided,
    cases=[
        case("eight tokens, a stride of three", 8, 3),
        case("nine tokens, a stride of four", 9, 4),
        case("a stride of one sees everything", 4, 1),
        case("a stride longer than the text", 3, 5),
    ],
    hidden_cases=_strided_cases,
    hints=[
        "Two patterns in one mask: the last `stride` tokens, and every token whose distance is a multiple of the "
        "stride. A key is seen if either says so.",
        "distance < stride, or distance % stride == 0; and never the future.",
    ],
    uses=["causal_mask"],
)


def _back(length: int) -> Tensor:
    return torch.arange(length)[:, None] - torch.arange(length)


@strided_mask.misconception("That is the window alone: nothing further back than `stride` tokens is seen.")
def window_only(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back < stride)


@strided_mask.misconception("That is the stride alone: the nearest tokens, which matter most, are skipped.")
def stride_only(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back % stride == 0)


@strided_mask.misconception("You join the two patterns with 'and'. A key is seen if either of them says so.")
def both_required(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back < stride) & (back % stride == 0)


@strided_mask.misconception(
    "Your far keys stand in fixed columns, the same for all queries. Here the pattern moves with the query: its "
    "*distance* is a multiple of the stride."
)
def fixed_columns(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & ((back < stride) | (torch.arange(length) % stride == 0))


@strided_mask.misconception("The future is visible: the pattern is cut at the diagonal.")
def both_directions(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back.abs() < stride) | (back % stride == 0)


@strided_mask.misconception("Your stride is counted from the end of the window, so it is one off further back.")
def stride_one_off(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & ((back < stride) | (back % stride == stride - 1))


strided_mask.equivalent_mutant(
    "return (distance >= 0) & ((distance < stride) | (distance % stride == 0))"
    " → return (distance >= 0) & ((distance <= stride) | (distance % stride == 0))",
    "A distance of exactly one stride is a multiple of it.",
)


@strided_mask.variant
def pair_by_pair_of_positions(length: int, stride: int) -> Tensor:
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        for key in range(query + 1):
            back = query - key
            mask[query, key] = back < stride or back in range(0, length, stride)
    return mask


@strided_mask.variant
def diagonal_by_diagonal(length: int, stride: int) -> Tensor:
    mask = torch.zeros(length, length)
    for back in [*range(min(stride, length)), *range(0, length, stride)]:
        mask.diagonal(-back).fill_(1)
    return mask.bool()


@strided_mask.variant
def remainders_of_positions(length: int, stride: int) -> Tensor:
    place = torch.arange(length)
    same_column = (place % stride).unsqueeze(1).eq(place % stride)
    near = torch.ones(length, length).triu(1 - stride) > 0
    return torch.logical_or(same_column, near).tril()
