"""The exercise on RoPE as in most checkpoints: the features of a pair are half the width apart."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.rotary import PROMOTED, TOLERANCE, clear_bf16, speeds_of, turned_pairs
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _evens_first(d: int) -> Tensor:
    """The order that moves the features of neighbouring pairs half the width apart: 0, 2, 4, …, 1, 3, 5, …"""
    return torch.arange(d).reshape(-1, 2).T.flatten()


def _rope_half(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    order = _evens_first(x.shape[-1])
    neighbours = x if interleaved else x[..., order.argsort()]
    return turned_pairs(neighbours, positions, speeds_of(len(order)))[..., order]


def _clear_halves(random: Random, width: int, positions: Tensor) -> Tensor:
    return clear_bf16(random, width, positions)[:, _evens_first(width)]


def _half_cases(random: Random) -> list[Case]:
    seen, mixed, far = Random(7), torch.tensor([5, 0, 33, 5]), torch.tensor([1001, 257, 3001])
    nearest, near = (torch.tensor([random.randint(0, last) for _ in range(4)]) for last in (3, 60))
    return [
        case("other shapes", normal(seen, 2, 3, 4, 8), mixed),
        case("other shapes", normal(seen, 3, 4, 6), mixed),
        case("other shapes", normal(seen, 4, 2), mixed),
        case("far into the text", normal(seen, 2, 4), torch.tensor([5000, 4999])),
        case("interleaved features", normal(seen, 2, 4, 10), mixed, interleaved=True),
        case("interleaved features", normal(seen, 4, 2), mixed, interleaved=True),
        case("other precisions", normal(seen, 4, 8).double(), mixed, interleaved=True),
        case("bf16, far into the text", _clear_halves(seen, 4, far), far),
        case("bf16, far into the text", clear_bf16(seen, 8, far), far, interleaved=True),
        case("other shapes", normal(random, 2, 3, 4, 8), nearest),
        case("other shapes", normal(random, 4, 2 * random.randint(5, 9)), near),
        case("interleaved features", normal(random, 2, 4, 2 * random.randint(4, 8)), near, interleaved=True),
    ]


_COUNT = torch.arange(6.0)[None]
_WIDE = normal(Random(5), 2, 8)
_FAR = torch.tensor([1001])

rope_half = Exercise(
    "rope_half",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_rope_half,
    differentiable=True,
    tolerance=TOLERANCE,
    cases=[
        case("only the order, at position 0", _COUNT, torch.tensor([0]), interleaved=True),
        case("nothing turns at position 0", _COUNT, torch.tensor([0])),
        case("one step", _COUNT, torch.tensor([1])),
        case("two tokens, d = 8", _WIDE, torch.tensor([3, 4])),
        case("the same, interleaved", _WIDE, torch.tensor([3, 4]), interleaved=True),
        case("two texts of two tokens", normal(Random(6), 2, 2, 6), torch.tensor([3, 4])),
        case(
            "two texts of two tokens, interleaved", normal(Random(6), 2, 2, 6), torch.tensor([3, 4]), interleaved=True
        ),
        edge(case("bf16 at position 1001", _clear_halves(Random(3), 12, _FAR), _FAR)),
    ],
    hidden_cases=_half_cases,
    hints=[
        "first, second = x.float().chunk(2, dim=-1) are the two halves; feature i of each makes a pair.",
        "(first, second) becomes (first cos − second sin, first sin + second cos), joined by torch.cat. The angles are "
        "as before, half as many as features.",
        "Interleaved features come as a₀ b₀ a₁ b₁ …. You want a₀ a₁ … b₀ b₁ …: "
        "torch.cat([x[..., ::2], x[..., 1::2]], dim=-1), before the rotation.",
    ],
    forbid=["transformers", "torch.onnx"],
)

rope_half.equivalent_mutant("a, b = x.float().chunk(2, dim=-1) → a, b = x.chunk(2, dim=-1)", PROMOTED)


@rope_half.variant
def as_in_llama(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    d = x.shape[-1]
    wide = x.float()
    if interleaved:
        wide = wide.reshape(*x.shape[:-1], d // 2, 2).transpose(-1, -2).flatten(-2)
    angle = torch.outer(positions.float(), 1.0 / 10_000 ** (torch.arange(0, d, 2).float() / d))
    angle = torch.cat((angle, angle), dim=-1)
    swapped = torch.cat((-wide[..., d // 2 :], wide[..., : d // 2]), dim=-1)
    return (wide * angle.cos() + swapped * angle.sin()).to(x.dtype)


@rope_half.variant
def halves_turned(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    d = x.shape[-1]
    if interleaved:
        x = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
    speeds = 10_000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions[:, None] * speeds
    cos, sin = angle.cos(), angle.sin()
    wide = x.float()
    a, b = wide.chunk(2, dim=-1)
    turned = torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return turned.to(x.dtype)


rope_half.slips(
    halves_turned,
    {
        "wide.chunk(2, dim=-1) → wide[..., ::2], wide[..., 1::2] ;; turned = torch.cat → turned = torch.stack ;; "
        "turned.to → turned.flatten(-2).to": "You turn neighbours. Here feature i belongs to feature i + d/2.",
        "= positions → = -positions": "You turn the other way. The first half should become first · cos − second · "
        "sin.",
        "if interleaved: → if False:": "You ignore `interleaved`. First reorder the features, so that neighbours that "
        "form a pair are d/2 apart.",
        "torch.cat([x[..., ::2], x[..., 1::2]], dim=-1) → torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)": "You "
        "apply the permutation backwards: π takes the even features first, then the odd ones.",
        "return turned → if interleaved:\n        turned = torch.stack(turned.chunk(2, dim=-1), dim=-1).flatten(-2)\n  "
        "  return turned": "You move the features back to their old places. Leave the result in halves.",
        "a * cos - b * sin → a * cos + b * sin": "Your first half needs a minus: first · cos − second · sin.",
        "positions[:, None] * speeds → positions.to(x.dtype)[:, None] * speeds.to(x.dtype) ;; x.float() → x": "Your "
        "angles, cosines or products are in bf16, which cannot count past 256. Compute in float32, cast at the end.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype) ;; x.float() → x": "You round "
        "cosine and sine to the dtype of `x`. Round once, at the end: compute in float32.",
        "positions[:, None] * speeds → (positions[:, None] * speeds).to(x.dtype) ;; x.float() → x": "You round the "
        "angles to the dtype of `x`. Near 1,000 the numbers of bf16 are 4 apart: keep angles in float32.",
        "positions[:, None] * speeds → (positions[:, None] * speeds).to(x.dtype).float()": "You round the angles to "
        "the dtype of `x`: keep them in float32.",
        "wide.chunk(2, dim=-1) → wide[..., ::2], wide[..., 1::2] ;; turned = torch.cat → turned = torch.stack ;; "
        "turned.to → turned.flatten(-2).to ;; if interleaved: → if False:": "That is `rope`: you turn neighbours, "
        "and leave them side by side. Here feature i belongs to i + d/2.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype)": "You round the angles' cosines "
        "and sines to 16 bits: keep them in float32.",
        "turned = torch.cat → turned = torch.stack ;; turned.to → turned.flatten(-2).to": "You turn the right pairs, "
        "but put the two features of each pair next to each other again. Leave the result in halves: torch.cat, not "
        "torch.stack.",
        "if interleaved: → if True:": "You always turn neighbours and reorder them into halves. Without `interleaved` "
        "the pairs are i and i + d/2 already.",
        "if interleaved: → if False: ;; "
        "return turned → if interleaved:\n        turned = torch.cat([turned[..., ::2], turned[..., 1::2]], dim=-1)\n  "
        "  return turned": "You turn feature i with i + d/2 as they come, and reorder afterwards. Interleaved features "
        "must be reordered first.",
        "if interleaved → if not interleaved": "You inverted `interleaved`: with True the features need a new order.",
        "positions[:, None] → torch.arange(len(positions))[:, None]": "You count the tokens yourself, from 0. The "
        "positions of the tokens are in `positions`.",
        "torch.arange(0, d, 2, → torch.arange(d // 2,": "You turn pair i by base^(−i/d) a position, without the 2: all "
        "but the first turn too fast. It is base^(−2i/d), from 1 down to nearly 1/base.",
        "cos, sin = → sin, cos =": "You exchange cosine and sine. At position 0 both halves must stay as they are, and "
        "the cosine of 0 is 1.",
        "-torch → -2 * torch": "You count the 2 of base^(−2i/d) twice: torch.arange(0, d, 2) holds 2i already. All "
        "pairs but the first turn too slowly.",
        "* speeds → * speeds[0]": "You turn all pairs by the same angle, that of pair 0. Each pair has a speed of its "
        "own.",
        "[a * cos → [a := a * cos": "You compute the second half from the first one as it is *after* the turn. Both "
        "need the features as they came.",
        "x[..., ::2], x[..., 1::2] → x[..., 1::2], x[..., ::2]": "You put the odd features first. The even ones are "
        "the first half of the new order.",
    },
)


rope_half.slips(
    as_in_llama,
    {
        "torch.cat((angle, angle), dim=-1) → angle.repeat_interleave(2, dim=-1)": "Your halves use the angles of "
        "neighbours: you repeat cos and sin in place (c₀ c₀ c₁ c₁) instead of one after the other (c₀ c₁ c₀ c₁).",
    },
)
