"""The exercise on RoPE as most checkpoints have it: the pairs are half the width apart."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.chapters.positions.exercises.rotary import TOLERANCE, evens_first, turned_pairs
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _rope_half(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    order = evens_first(x.shape[-1])
    neighbours = x if interleaved else x[..., order.argsort()]
    return turned_pairs(neighbours, positions)[..., order]


def _half_cases(random: Random) -> list[Case]:
    near = torch.tensor([random.randint(0, 60) for _ in range(4)])
    return [
        case("other shapes", normal(random, 2, 3, 4, 8), near),
        case("other shapes", normal(random, 4, 2 * random.randint(5, 9)), near),
        case("interleaved features", normal(random, 2, 4, 2 * random.randint(4, 8)), near, interleaved=True),
        case("other precisions", normal(random, 4, 8).double(), near, interleaved=True),
        case("bf16, far into the text", normal(random, 2, 4, 8).bfloat16(), near + random.randint(300, 1500)),
    ]


_COUNT = torch.arange(6.0)[None]
_WIDE = normal(Random(5), 2, 8)

rope_half = Exercise(
    "rope_half",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_rope_half,
    tolerance=TOLERANCE,
    cases=[
        case("only the order, at position 0", _COUNT, torch.tensor([0]), interleaved=True),
        case("nothing turns at position 0", _COUNT, torch.tensor([0])),
        case("one step", _COUNT, torch.tensor([1])),
        case("two tokens, d = 8", _WIDE, torch.tensor([3, 4])),
        case("the same, interleaved", _WIDE, torch.tensor([3, 4]), interleaved=True),
    ],
    hidden_cases=_half_cases,
    hints=[
        "first, second = x.float().chunk(2, dim=-1) are the two halves; feature i of each makes a pair.",
        "(first, second) becomes (first cos − second sin, first sin + second cos), joined by torch.cat. The angles are "
        "as before, half as many as features.",
        "Interleaved features come as a₀ b₀ a₁ b₁ …. You want a₀ a₁ … b₀ b₁ …: "
        "torch.cat([x[..., ::2], x[..., 1::2]], dim=-1), before the rotation.",
    ],
    forbid=["torch.nn", "transformers"],
)


@rope_half.misconception("You turn neighbours. Here feature i belongs to feature i + d/2.")
def neighbours_turned(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return turned_pairs(x[..., evens_first(x.shape[-1])] if interleaved else x, positions)


@rope_half.misconception("You turn the other way: the first half becomes first · cos − second · sin.")
def clockwise_halves(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, -positions, interleaved)


@rope_half.misconception(
    "Your halves meet the angles of neighbours: cos and sin are repeated in place (c₀ c₀ c₁ c₁) instead of one after "
    "the other (c₀ c₁ c₀ c₁)."
)
def mixed_layouts(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
    first, second = x.double().chunk(2, dim=-1)
    return (x.double() * angle.cos() + torch.cat([-second, first], dim=-1) * angle.sin()).to(x.dtype)


@rope_half.misconception("You ignore `interleaved`. Neighbours that were a pair must first come to be d/2 apart.")
def order_ignored(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, positions)


@rope_half.misconception("You apply the permutation backwards: it takes the even features first, then the odd ones.")
def inverse_order(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x[..., evens_first(x.shape[-1]).argsort()] if interleaved else x, positions)


@rope_half.misconception("You bring the features back to their old places. The result stays in halves.")
def brought_back(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    result = _rope_half(x, positions, interleaved)
    return result[..., evens_first(x.shape[-1]).argsort()] if interleaved else result


@rope_half.misconception("Your first half needs a minus: first · cos − second · sin.")
def no_minus(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    forward, backward = _rope_half(x, positions, interleaved), _rope_half(x, -positions, interleaved)
    return torch.where(torch.arange(x.shape[-1]) < x.shape[-1] // 2, backward, forward)
