"""The exercise on RoPE as in most checkpoints: the features of a pair are half the width apart."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.chapters.positions.exercises.rotary import PROMOTED, TOLERANCE, clear_bf16, evens_first, turned_pairs
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _rope_half(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    order = evens_first(x.shape[-1])
    neighbours = x if interleaved else x[..., order.argsort()]
    return turned_pairs(neighbours, positions)[..., order]


def _clear_halves(random: Random, width: int, positions: Tensor) -> Tensor:
    return clear_bf16(random, width, positions)[:, evens_first(width)]


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


@rope_half.misconception("You turn neighbours. Here feature i belongs to feature i + d/2.")
def neighbours_turned(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return turned_pairs(x[..., evens_first(x.shape[-1])] if interleaved else x, positions)


@rope_half.misconception("You turn the other way. The first half should become first · cos − second · sin.")
def clockwise_halves(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, -positions, interleaved)


@rope_half.misconception(
    "Your halves use the angles of neighbours: you repeat cos and sin in place (c₀ c₀ c₁ c₁) instead of one after the "
    "other (c₀ c₁ c₀ c₁)."
)
def mixed_layouts(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
    first, second = x.double().chunk(2, dim=-1)
    return (x.double() * angle.cos() + torch.cat([-second, first], dim=-1) * angle.sin()).to(x.dtype)


@rope_half.misconception(
    "You ignore `interleaved`. First reorder the features, so that neighbours that form a pair are d/2 apart."
)
def order_ignored(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, positions)


@rope_half.misconception("You apply the permutation backwards: π takes the even features first, then the odd ones.")
def inverse_order(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x[..., evens_first(x.shape[-1]).argsort()] if interleaved else x, positions)


@rope_half.misconception("You move the features back to their old places. Leave the result in halves.")
def brought_back(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    result = _rope_half(x, positions, interleaved)
    return result[..., evens_first(x.shape[-1]).argsort()] if interleaved else result


@rope_half.misconception("Your first half needs a minus: first · cos − second · sin.")
def no_minus(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    forward, backward = _rope_half(x, positions, interleaved), _rope_half(x, -positions, interleaved)
    return torch.where(torch.arange(x.shape[-1]) < x.shape[-1] // 2, backward, forward)


@rope_half.misconception(
    "Your angles, cosines or products are in bf16, which cannot count past 256. Compute in float32, cast at the end."
)
def all_in_bf16(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    speed = angles(torch.tensor(1), x.shape[-1]).to(x.dtype)
    angle = positions.to(x.dtype)[:, None] * speed
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


@rope_half.misconception("You round cosine and sine to the dtype of `x`. Round once, at the end: compute in float32.")
def waves_in_bf16(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1])
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@rope_half.misconception("You round the angles' cosines and sines to 16 bits: keep them in float32.")
def waves_rounded(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1])
    cos, sin = (wave.to(x.dtype).double() for wave in (angle.cos(), angle.sin()))
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


@rope_half.misconception(
    "You turn the right pairs, but put the two features of each pair next to each other again. Leave the result in "
    "halves: torch.cat, not torch.stack."
)
def interleaved_results(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    result = _rope_half(x, positions, interleaved)
    return result[..., evens_first(x.shape[-1]).argsort()]


@rope_half.misconception(
    "You always turn neighbours and reorder them into halves. Without `interleaved` the pairs are i and i + d/2 "
    "already."
)
def always_reordered(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, positions, interleaved=True)


@rope_half.misconception(
    "You turn feature i with i + d/2 as they come, and reorder afterwards. Interleaved features must be reordered "
    "first."
)
def reordered_afterwards(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    result = _rope_half(x, positions)
    return result[..., evens_first(x.shape[-1])] if interleaved else result


@rope_half.misconception("You inverted `interleaved`: with True the features need a new order.")
def flag_inverted(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, positions, not interleaved)


@rope_half.misconception("You count the tokens yourself, from 0. The positions of the tokens are in `positions`.")
def counted_yourself(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    return _rope_half(x, torch.arange(len(positions)), interleaved)


@rope_half.misconception(
    "You turn pair i by base^(−i/d) a position, without the 2: all but the first turn too fast. It is base^(−2i/d), "
    "from 1 down to nearly 1/base."
)
def exponent_without_the_two(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1], 100.0)
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).to(x.dtype)


@rope_half.misconception(
    "You exchange cosine and sine. At position 0 both halves must stay as they are, and the cosine of 0 is 1."
)
def cosine_for_sine(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    quarter = math.pi / 2
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = quarter - angles(positions, x.shape[-1])
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).to(x.dtype)


@rope_half.misconception(
    "You count the 2 of base^(−2i/d) twice: torch.arange(0, d, 2) holds 2i already. All pairs but the first turn too "
    "slowly."
)
def the_two_twice(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1], 10_000.0**2)
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).to(x.dtype)


@rope_half.misconception("You turn all pairs by the same angle, that of pair 0. Each pair has a speed of its own.")
def one_speed(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1])[..., :1]
    a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).to(x.dtype)


@rope_half.misconception(
    "You compute the second half from the first one as it is *after* the turn. Both need the features as they came."
)
def first_half_overwritten(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    x = x[..., evens_first(x.shape[-1])] if interleaved else x
    angle = angles(positions, x.shape[-1])
    a, b = x.double().chunk(2, dim=-1)
    a = a * angle.cos() - b * angle.sin()
    return torch.cat([a, a * angle.sin() + b * angle.cos()], dim=-1).to(x.dtype)


@rope_half.misconception("You put the odd features first. The even ones are the first half of the new order.")
def odd_features_first(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    if interleaved:
        return _rope_half(torch.cat([x[..., 1::2], x[..., ::2]], dim=-1), positions)
    return _rope_half(x, positions)


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
def complex_numbers(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    half = x.shape[-1] // 2
    speed = torch.exp(-math.log(10_000) * torch.arange(half) / half)
    wide = x.float()
    parts = (wide[..., ::2], wide[..., 1::2]) if interleaved else (wide[..., :half], wide[..., half:])
    points = torch.complex(*(part.contiguous() for part in parts)) * torch.exp(1j * positions[:, None] * speed)
    return torch.cat([points.real, points.imag], dim=-1).to(x.dtype)


@rope_half.variant
def feature_by_feature(x: Tensor, positions: Tensor, interleaved: bool = False) -> Tensor:
    d = x.shape[-1]
    result = x.clone()
    for i in range(d // 2):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + d // 2)
        angle = positions.double() * 10_000 ** (-2 * i / d)
        a, b = x[..., first].double(), x[..., second].double()
        result[..., i] = (a * angle.cos() - b * angle.sin()).to(x.dtype)
        result[..., i + d // 2] = (b * angle.cos() + a * angle.sin()).to(x.dtype)
    return result
