"""The exercise on RoPE as in the paper: neighbouring features are turned."""

from __future__ import annotations

from random import Random

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BASE = 10_000.0
# Two careful fp32 computations differ by an angle of 3e-4 at position 2000; their bf16 results by one unit, 2^-7.
TOLERANCE = Tolerance(8e-3, 1e-3)


def turned(x: Tensor, angle: Tensor) -> Tensor:
    """Neighbouring features as complex numbers, times e^(i angle), in float64; back in the dtype of x."""
    pairs = torch.view_as_complex(rearrange(x.double(), "... (pair two) -> ... pair two", two=2).contiguous())
    result = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(result).flatten(-2).to(x.dtype)


def evens_first(d: int) -> Tensor:
    """The order that takes neighbouring pairs to pairs half the width apart: 0, 2, 4, …, 1, 3, 5, …"""
    return torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])


def turned_pairs(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    """RoPE with neighbours as pairs."""
    return turned(x, angles(positions, x.shape[-1], base))


def _rope_cases(random: Random) -> list[Case]:
    near = torch.tensor([random.randint(0, 60) for _ in range(5)])
    far = torch.tensor([random.randint(300, 2000) for _ in range(5)])
    return [
        case("other shapes", normal(random, 2, 3, 5, 8), near),
        case("other shapes", normal(random, 5, 2), near),
        case("other bases", normal(random, 2, 5, 16), near, base=float(random.randint(2, 90) * 10_000)),
        case("bf16, far into the text", normal(random, 2, 5, 8).bfloat16(), far),
        case("other precisions", normal(random, 2, 5, 8).double(), near),
        case("bad input", normal(random, 5, 2 * random.randint(1, 4) + 1), near),
    ]


_UNIT = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
_SOME = normal(Random(3), 3, 4)

rope = Exercise(
    "rope",
    points=3,
    minutes=9,
    difficulty=2,
    reference=turned_pairs,
    tolerance=TOLERANCE,
    cases=[
        case("nothing turns at position 0", _SOME[:1], torch.tensor([0])),
        case("(1, 0) in both pairs, one step", _UNIT, torch.tensor([1])),
        case("three tokens", _SOME, torch.tensor([0, 1, 2])),
        case("three tokens, later in the text", _SOME, torch.tensor([7, 8, 9])),
        case("base 100", _SOME, torch.tensor([0, 1, 2]), base=100.0),
        case("bf16 at position 1001", _SOME[:1].bfloat16(), torch.tensor([1001])),
        case("an odd width", torch.ones(1, 3), torch.tensor([1])),
    ],
    hidden_cases=_rope_cases,
    hints=[
        "The angles are those of the sinusoidal table: positions[:, None] * base ** (-torch.arange(0, d, 2) / d).",
        "even, odd = x.float()[..., ::2], x.float()[..., 1::2]. Each pair (a, b) becomes "
        "(a cos − b sin, a sin + b cos).",
        "torch.stack([first, second], dim=-1).flatten(-2) puts the pairs together again; .to(x.dtype) comes last.",
    ],
    forbid=["torch.nn", "transformers"],
)


@rope.misconception("You turn the other way: (a, b) becomes (a cos − b sin, a sin + b cos).")
def clockwise(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, -positions, base)


@rope.misconception("You pair feature i with i + d/2. That layout is the next exercise; here neighbours are pairs.")
def halves(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    order = evens_first(x.shape[-1])
    return turned_pairs(x[..., order.argsort()], positions, base)[..., order]


@rope.misconception("All your pairs turn at the speed of the first. Pair i turns at base^(−2i/d).")
def one_speed(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned(x, angles(positions, x.shape[-1], 1.0))


@rope.misconception("Your exponent is i/d. Pair i turns at base^(−2i/d).")
def half_the_exponent(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions, base**0.5)


@rope.misconception("You count the tokens yourself, from 0. A token's position is in `positions`.")
def counted_from_zero(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, torch.arange(len(positions)), base)


@rope.misconception("You add a sine and a cosine. RoPE adds nothing: it turns the vector and keeps its length.")
def added(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    return (x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)).to(x.dtype)


@rope.misconception("Your second formula is right and the first is not: it is a cos − b sin, with a minus.")
def plus_twice(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    forward, backward = turned_pairs(x, positions, base), turned_pairs(x, -positions, base)
    return torch.where(torch.arange(x.shape[-1]) % 2 == 0, backward, forward)


@rope.misconception("Your angles are in bf16, which cannot count past 256. Compute in float32 and cast at the end.")
def angles_in_bf16(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    if x.dtype != torch.bfloat16:
        return turned_pairs(x, positions, base)
    speed = angles(torch.tensor(1), x.shape[-1], base).bfloat16()
    return turned(x, (positions.bfloat16()[:, None] * speed).double())
