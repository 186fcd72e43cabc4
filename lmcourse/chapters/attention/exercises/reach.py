"""The exercise on how far information travels through several layers."""

from __future__ import annotations

from functools import reduce
from operator import or_
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _field(masks: list[Tensor]) -> Tensor:
    """Count the tokens whose information reaches each token; each set of tokens is stored as the bits of an integer."""
    heard = [1 << token for token in range(len(masks[0]))]
    for mask in masks:
        heard = [
            reduce(or_, (below for below, seen in zip(heard, row, strict=True) if seen), 0) for row in mask.tolist()
        ]
    return torch.tensor([each.bit_count() for each in heard])


def _window(length: int, size: int) -> Tensor:
    ones = torch.ones(length, length, dtype=torch.bool)
    return ones.tril() & ones.triu(1 - size)


def _stride(length: int, stride: int) -> Tensor:
    back = torch.arange(length)[:, None] - torch.arange(length)
    return (back >= 0) & ((back % stride == 0) | (back == 0))


def _any(random: Random, length: int) -> Tensor:
    """Any causal mask in which a token sees itself."""
    return torch.tensor([[j == i or (j < i and random.random() < 0.3) for j in range(length)] for i in range(length)])


def _cases(random: Random) -> list[Case]:
    n, w, depth = random.randint(16, 24), random.randint(3, 4), random.randint(3, 4)
    window, stride, causal = _window(n, w), _stride(n, w + 1), _window(n, n)
    seen = Random(7)
    return [
        case("one layer", [_any(seen, 6)]),
        case("any masks", [_any(seen, 9), _any(seen, 9), _any(seen, 9)]),
        case("different layers", [_stride(13, 5), _window(13, 3), _window(13, 2)]),
        case("a layer that sees everything", [_window(10, 10), _window(10, 2)]),
        case("both ways", [_any(seen, 7).T, _any(seen, 7), _window(7, 2).T]),
        case("one token", [torch.ones(1, 1, dtype=torch.bool)] * 2),
        case("a long text", [_FIRST_SEEN_BY_256, _LAST_SEES_ALL]),
        case("more layers than ways can be counted", [_PAIR_AND_ONE] * 140),
        case("deeper stacks of windows", [window] * depth),
        case("deeper stacks of windows", [_window(2 * n, w + 2)] * (depth + 1)),
        case("one layer", [window]),
        case("different layers", [window, stride]),
        case("different layers", [_stride(n, 5), _window(n, 3), _window(n, 2)]),
        case("a layer that sees everything", [window, window, causal]),
        case("any masks", [_any(random, 12), _any(random, 12)]),
        case("any masks", [_any(random, 15) for _ in range(3)]),
    ]


_PAIR_AND_ONE = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()
"""A pair of tokens whose number of paths doubles with every layer: 2^139 paths are too many for an int64 or a
float32.
"""
_FIRST_SEEN_BY_256 = torch.tensor([[j == i or (j == 0 and i != 1) for j in range(257)] for i in range(257)])
_LAST_SEES_ALL = torch.tensor([[j == i or i == 256 for j in range(257)] for i in range(257)])
"""With two layers of this mask, the last token sees 257 tokens, and the first of them along 256 paths. Eight bits can
hold neither count."""
_SHIFT = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]).bool()
_SKIP = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]).bool()

receptive_field = Exercise(
    "receptive_field",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_field,
    cases=[
        case("one layer, a window of three", [_window(6, 3)]),
        case("one layer, every second token", [_stride(7, 2)]),
        case("two layers, a window of three", [_window(8, 3)] * 2),
        case("four layers, a window of three", [_window(8, 3)] * 4),
        case("two layers, the order matters", [_SHIFT, _SKIP]),
        case("a window, then a stride", [_window(8, 2), _stride(8, 2)]),
        edge(case("257 tokens, 256 paths to one of them", [_FIRST_SEEN_BY_256, _LAST_SEES_ALL])),
    ],
    hidden_cases=_cases,
    hints=[
        "One layer is easy: count the True in each row. For two layers: a token has seen all that the tokens in its "
        "row have seen.",
        "That is a matrix product: (mask of the upper layer) @ (what the lower layer has seen) is above zero where "
        "there is a path.",
        "Start with the identity (each token has seen itself), and for each mask from the bottom up: seen = "
        "(mask.float() @ seen) > 0. At the end, count the True in the row.",
    ],
)


@receptive_field.variant
def from_the_bottom_up(masks: list[Tensor]) -> Tensor:
    seen = torch.eye(len(masks[0])).bool()
    for mask in masks:
        seen = mask.float() @ seen.float() > 0
    return seen.sum(dim=-1)


receptive_field.slips(
    from_the_bottom_up,
    {
        "seen.sum(dim=-1) → torch.arange(1, len(seen) + 1) - seen.int().argmax(dim=-1)": "You count all tokens from "
        "the first one that is reached. A mask may have gaps: count only the tokens that are reached.",
        "mask.float() @ seen.float() > 0 → mask": "You count only what the top layer sees directly. The tokens that it "
        "sees have seen others in the layers below: count those, too.",
        "mask.float() @ seen.float() > 0 → mask | seen": "You combine the layers' masks with 'or'. Layers work one "
        "after the other, which is a matrix product.",
        "torch.eye(len(masks[0])).bool() → masks[0] ;; mask.float() @ seen.float() > 0 → mask & seen": "You keep only "
        "the tokens that are seen directly in every layer. A path may take other tokens on its way.",
        " > 0 →  ;; dim=-1) → dim=-1).long()": "You count paths, not tokens: a token that is reached twice still "
        "counts once.",
        "mask.float() @ seen.float() > 0 → mask.byte() @ seen.byte() ;; seen.sum → (seen > 0).sum": "You count paths "
        "in 8 bits, where 256 wraps around to 0. Between the layers keep True or False, not a count.",
        "in masks → in masks[::-1]": "Your layers are in the wrong order: masks[0] is the bottom layer, which runs "
        "first.",
        "dim=-1 → dim=0": "You count the tokens that depend on a token, not those that it depends on: sum over keys, "
        "the last axis.",
        "seen.sum(dim=-1) → sum(mask.sum(dim=-1) for mask in masks).clamp(max=torch.arange(1, len(seen) "
        "+ 1))": "You add up the windows of the layers. They overlap, at the token itself at least: follow the paths "
        "from layer to layer.",
        "return seen.sum(dim=-1) → longest = len(masks) * (masks[0].sum(dim=-1).max() - 1) + 1\n    return "
        "torch.arange(1, len(seen) + 1).clamp(max=longest)": "You use the formula L·(W − 1) + 1, which holds only if "
        "all layers have the same window. For other masks, follow the paths.",
        "seen.sum(dim=-1) → torch.stack([mask.sum(dim=-1) for mask in "
        "masks]).prod(dim=0).clamp(max=len(seen))": "You multiply the numbers of the layers. Paths meet at the same "
        "tokens, and each token counts once.",
        "in masks → in [masks[0], *masks]": "You apply the first mask twice. Start from the identity, or start from "
        "masks[0] and continue with masks[1].",
        "in masks → in masks[:-1]": "You leave out the top layer. Its mask is the last one of the list.",
        "dim=-1) → dim=-1)[-1]": "You give the field of the last token alone; every token has one.",
    },
)


@receptive_field.variant
def down_the_tower(masks: list[Tensor]) -> Tensor:
    counts = []
    for token in range(len(masks[0])):
        reached = {token}
        for mask in masks[::-1]:
            reached = set(mask[sorted(reached)].any(dim=0).nonzero().flatten().tolist())
        counts.append(len(reached))
    return torch.tensor(counts, dtype=torch.int32)
