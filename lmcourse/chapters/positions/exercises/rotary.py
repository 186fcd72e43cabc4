"""The exercise on RoPE as in the paper: it rotates neighbouring features as pairs."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.copier import turn_pairs
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

# An fp32 angle of a hundred radians has an error of up to 3e-5, and features are a few times larger than 1.
TOLERANCE = Tolerance(0.0, 2e-4)


def speeds_of(d: int, base: float = 10_000.0) -> Tensor:
    """Return the speeds of a head's pairs, in radians a token."""
    return base ** (-torch.arange(0, d, 2) / d)


def turned_pairs(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    """Apply RoPE: multiply neighbouring features, as complex numbers, by e^(i angle), in float64."""
    if x.shape[-1] % 2:
        raise ValueError(f"RoPE turns features in pairs: the width must be even, not {x.shape[-1]}")
    return turn_pairs(*(each.double() for each in (x, positions, speeds))).to(x.dtype)


def clear_bf16(random: Random, width: int, positions: Tensor) -> Tensor:
    """Tokens in bf16 whose rotated features round to the same number for every rounding of an fp32 angle."""
    while True:
        x = normal(random, len(positions), width).bfloat16()
        exact = turned_pairs(x.double(), positions, speeds_of(width))
        low, high = ((exact + shift).bfloat16().double() for shift in (-TOLERANCE.absolute, TOLERANCE.absolute))
        if (high - low <= TOLERANCE.absolute).all():
            return x


def _turn(name: str, x: Tensor, positions: Tensor, speeds: Tensor | None = None) -> Case:
    """A case with these speeds, or with those of the base 10,000."""
    return case(name, x, positions, speeds_of(x.shape[-1]) if speeds is None else speeds)


def _rope_cases(random: Random) -> list[Case]:
    seen, mixed, far = Random(7), torch.tensor([5, 0, 33, 5]), torch.tensor([1001, 257, 3001])
    near = torch.tensor([random.randint(0, 60) for _ in range(5)])
    return [
        _turn("other shapes", normal(seen, 2, 3, 4, 8), mixed),
        _turn("other shapes", normal(seen, 3, 4, 6), mixed),
        _turn("other shapes", normal(seen, 4, 2), mixed),
        _turn("heads before tokens", normal(Random(8), 2, 4, 3, 8).transpose(1, 2), mixed),
        _turn("far into the text", normal(seen, 2, 4), torch.tensor([5000, 4999])),
        _turn("other speeds", normal(seen, 2, 4, 16), mixed, speeds_of(16, 500_000.0)),
        _turn("bf16, far into the text", clear_bf16(seen, 4, far), far),
        _turn("bf16, far into the text", clear_bf16(seen, 8, far), far),
        _turn("other precisions", normal(seen, 2, 4, 8).double(), mixed),
        _turn("bad input", normal(seen, 4, 1), mixed),
        _turn("bad input", normal(seen, 4, 7), mixed),
        _turn("other shapes", normal(random, 2, 3, 5, 8), near),
        _turn("other speeds", normal(random, 2, 5, 6), near, torch.tensor([random.uniform(0.1, 2) for _ in range(3)])),
        _turn("positions between tokens", normal(random, 2, 5, 8), near / 8 + 0.3),
    ]


_SOME = normal(Random(3), 3, 4)
_FAR = torch.tensor([1001])
_FIRST = torch.arange(3)

rope = Exercise(
    "rope",
    points=3,
    minutes=8,
    difficulty=2,
    reference=turned_pairs,
    contiguous="torch.view_as_complex, as in Llama, takes features that lie side by side",
    tolerance=TOLERANCE,
    cases=[
        _turn("nothing turns at position 0", _SOME[:1], torch.tensor([0])),
        _turn("(1, 0) in both pairs, one step", torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([1])),
        _turn("three tokens", _SOME, _FIRST),
        _turn("three tokens, later in the text", _SOME, torch.tensor([7, 8, 9])),
        _turn("speeds of 0.3 and 0.7", _SOME, _FIRST, torch.tensor([0.3, 0.7])),
        _turn("positions of a half and 2.25", _SOME[:2], torch.tensor([0.5, 2.25])),
        _turn("three pairs", normal(Random(5), 2, 6), torch.tensor([3, 4])),
        edge(_turn("bf16 at position 1001", clear_bf16(Random(3), 12, _FAR), _FAR)),
        _turn("two texts of three tokens", normal(Random(6), 2, 3, 6), _FIRST),
        script(
            "the gradient at x",
            "x.requires_grad_()\n(rope(x, positions, speeds) * factors).sum().backward()\nx.grad",
            x=_SOME,
            positions=_FIRST,
            speeds=speeds_of(4),
            factors=normal(Random(4), 3, 4),
        ),
        _turn("an odd width", torch.ones(1, 5), torch.tensor([1])),
    ],
    hidden_cases=_rope_cases,
    hints=[
        "One angle for each token and pair: positions[:, None] * speeds has the shape (s, d/2).",
        "even, odd = x.float()[..., ::2], x.float()[..., 1::2]. Each pair (a, b) becomes "
        "(a cos − b sin, a sin + b cos).",
        "torch.stack([first, second], dim=-1).flatten(-2) puts the pairs together again; .to(x.dtype) comes last.",
    ],
    forbid=["transformers", "torch.onnx"],
)


PAIRS = "a, b = (x.float()[..., ::2], x.float()[..., 1::2])"
PROMOTED = "16 bits times a cosine in float32 is float32"
for pairs in ("(x[..., ::2], x.float()[..., 1::2])", "(x.float()[..., ::2], x[..., 1::2])"):
    rope.equivalent_mutant(f"{PAIRS} → a, b = {pairs}", PROMOTED)


@rope.variant
def swapped_and_repeated(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    wide = x.float()
    angle = torch.outer(positions.float(), speeds).repeat_interleave(2, -1)
    swapped = torch.stack((-wide[..., 1::2], wide[..., ::2]), dim=-1).reshape(wide.shape)
    return (wide * angle.cos() + swapped * angle.sin()).to(x.dtype)


@rope.variant
def complex_numbers(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    if x.size(-1) % 2 != 0:
        raise ValueError("odd")
    angle = positions.unsqueeze(-1) * speeds
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2).type_as(x)


@rope.variant
def token_by_token(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    d = x.shape[-1]
    if d % 2 == 1:
        raise ValueError("odd")
    result = torch.zeros_like(x)
    for token, position in enumerate(positions.tolist()):
        for i in range(0, d, 2):
            angle = position * speeds[i // 2].item()
            a, b = x[..., token, i].float(), x[..., token, i + 1].float()
            result[..., token, i] = a * math.cos(angle) - b * math.sin(angle)
            result[..., token, i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


@rope.variant
def one_large_matrix_in_doubles(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    turned = []
    for token, position in enumerate(positions):
        matrix = torch.eye(d, dtype=torch.float64)
        for i in range(d // 2):
            angle = position.double() * speeds[i].double()
            matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = torch.cos(angle)
            matrix[2 * i + 1, 2 * i], matrix[2 * i, 2 * i + 1] = torch.sin(angle), -torch.sin(angle)
        turned.append(x[..., token, :].double() @ matrix.T)
    return torch.stack(turned, dim=-2).to(x.dtype)


@rope.variant
def both_formulas(x: Tensor, positions: Tensor, speeds: Tensor) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    token, speed = positions[:, None].double(), speeds.double()
    angle = token * speed
    cos, sin = angle.cos(), angle.sin()
    wide = x.float()
    a, b = wide[..., ::2], wide[..., 1::2]
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return turned.flatten(-2).to(x.dtype)


rope.slips(
    both_formulas,
    {
        "cos, sin = → sin, cos =": "You swapped cosine and sine. At position 0 the angle is 0, so nothing may change.",
        "cos, sin = → sin, cos = ;; a * sin + b * cos → a * sin - b * cos": "You swapped cosine and sine: at position "
        "0 your pair (a, b) becomes (−b, a), but nothing may turn there.",
        "turned.flatten → turned.flip(-1).flatten": "Your two parts of each pair are swapped: the real part comes "
        "first, in feature 2i.",
        "turned.flatten → turned.mT.flatten": "You put all first features before all second ones. Each pair stays "
        "where it was: 2i and 2i + 1.",
        "speeds.double() → 10_000.0 ** (-torch.arange(0, d, 2) / d)": "You compute the speeds yourself, from 10,000. "
        "Use `speeds`.",
        "positions[:, None].double() → positions[:, None].long()": "You make the positions whole numbers. They may be "
        "fractions: 0.5 is half a step.",
        "speeds.double() → (1 / speeds)": "You take `speeds` for wavelengths. The angle is position times speed.",
        'raise ValueError("odd") → return torch.cat([both_formulas(x[..., :-1], positions, speeds), x[..., '
        "-1:]], dim=-1)": "With an odd width the last feature has no partner: raise ValueError.",
        "angle = token → angle = -token": "You turn the other way. (a, b) should become (a cos − b sin, "
        "a sin + b cos).",
        "wide[..., ::2], wide[..., 1::2] → wide.chunk(2, dim=-1) ;; turned.flatten → turned.mT.flatten": "You pair "
        "feature i with i + d/2. Many models do that; here neighbours are pairs.",
        "speeds.double() → speeds.double()[0]": "All your pairs turn at the speed of the first. Pair i turns at "
        "speeds[i].",
        "[a * cos → [a := a * cos": "You overwrite the first feature of a pair before the second one needs it. Compute "
        "both from the old pair.",
        "token * speed → (token * speed).to(x.dtype) ;; x.float() → x": "You round the "
        "angles to the dtype of x. In bf16 an angle of 1001 becomes 1000: keep them in float32.",
        "positions[:, None] → torch.arange(len(positions))[:, None]": "You count the tokens yourself, from 0. A "
        "token's position is in `positions`.",
        "a * cos - b * sin, a * sin + b * cos → a + sin, b + cos": "You add a sine and a cosine. RoPE adds nothing: it "
        "turns the vector and keeps its length.",
        "a * cos - b * sin → a * cos + b * sin": "Your second formula is right and the first is not: it is a cos − b "
        "sin, with a minus.",
        "token * speed → (token.to(x.dtype) * speed.to(x.dtype)).double()": "Your angles "
        "are in bf16, which cannot count past 256. Compute in float32 and cast at the end.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype) ;; x.float() → x": "Your cosines "
        "and sines, or the products with them, are in bf16. Compute in float32 and cast at the end.",
        "token * speed → token.to(x.dtype) * speed.to(x.dtype) ;; x.float() → x": "You "
        "compute in the dtype of x throughout. In bf16 position 1001 becomes 1000: turn positions and x into float32 "
        "first, and cast the result.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype)": "You round the angles' cosines "
        "and sines to 16 bits: keep them in float32.",
        "a * sin + b * cos → a * sin - b * cos || a * sin + b * cos → -a * sin - b * cos": "Your second formula has "
        "wrong signs. It is a sin + b cos, both with a plus.",
        "a * cos - b * sin, a * sin + b * cos → a * cos, b * cos": "You multiply by the cosine alone. A turn mixes the "
        "two features of a pair: a cos − b sin.",
        "- b * sin, a * sin → - a * sin, b * sin": "Your features do not mix: the first of a pair needs its partner, a "
        "cos − b sin.",
        "speeds.double() → speeds.double() * math.pi / 180": "Your angles are in degrees. θ is in radians, as "
        "torch.cos expects it.",
    },
)


rope.slips(
    swapped_and_repeated,
    {
        "torch.stack((-wide[..., 1::2], wide[..., ::2]), dim=-1).reshape(wide.shape) → "
        "torch.cat((-wide[..., d // 2 :], wide[..., : d // 2]), dim=-1)": "Your angles belong to neighbours, but you "
        "mix feature i with feature i + d/2. Neighbours 2i and 2i + 1 are a pair.",
        "repeat_interleave(2, -1) → repeat(1, 2)": "Your angles come as θ₀ θ₁ θ₀ θ₁, for halves. Neighbours share an "
        "angle: θ₀ θ₀ θ₁ θ₁.",
    },
)
