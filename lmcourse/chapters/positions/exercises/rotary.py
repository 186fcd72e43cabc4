"""The exercise on RoPE as in the paper: it rotates neighbouring features as pairs."""

from __future__ import annotations

import math
from random import Random

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

# An fp32 angle of a hundred radians has an error of up to 3e-5, and features are a few times larger than 1.
TOLERANCE = Tolerance(0.0, 2e-4)


def turned_pairs(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Apply RoPE: multiply neighbouring features, as complex numbers, by e^(i angle), in float64."""
    angle = angles(positions, x.shape[-1], base)
    pairs = torch.view_as_complex(rearrange(x.double(), "... (pair two) -> ... pair two", two=2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)


def clear_bf16(random: Random, width: int, positions: Tensor) -> Tensor:
    """Tokens in bf16 whose rotated features round to the same number for every rounding of an fp32 angle."""
    while True:
        x = normal(random, len(positions), width).bfloat16()
        exact = turned_pairs(x.double(), positions)
        low, high = ((exact + shift).bfloat16().double() for shift in (-TOLERANCE.absolute, TOLERANCE.absolute))
        if (high - low <= TOLERANCE.absolute).all():
            return x


def _rope_cases(random: Random) -> list[Case]:
    seen, mixed, far = Random(7), torch.tensor([5, 0, 33, 5]), torch.tensor([1001, 257, 3001])
    near = torch.tensor([random.randint(0, 60) for _ in range(5)])
    return [
        case("other shapes", normal(seen, 2, 3, 4, 8), mixed),
        case("other shapes", normal(seen, 3, 4, 6), mixed),
        case("other shapes", normal(seen, 4, 2), mixed),
        case("heads before tokens", normal(Random(8), 2, 4, 3, 8).transpose(1, 2), mixed),
        case("far into the text", normal(seen, 2, 4), torch.tensor([5000, 4999])),
        case("other bases", normal(seen, 2, 4, 16), mixed, base=500_000.0),
        case("bf16, far into the text", clear_bf16(seen, 4, far), far),
        case("bf16, far into the text", clear_bf16(seen, 8, far), far),
        case("other precisions", normal(seen, 2, 4, 8).double(), mixed),
        case("bad input", normal(seen, 4, 1), mixed),
        case("bad input", normal(seen, 4, 7), mixed),
        case("other shapes", normal(random, 2, 3, 5, 8), near),
        case("other bases", normal(random, 2, 5, 16), near, base=float(random.randint(2, 90) * 10_000)),
    ]


_SOME = normal(Random(3), 3, 4)
_FAR = torch.tensor([1001])

rope = Exercise(
    "rope",
    points=3,
    minutes=9,
    difficulty=2,
    reference=turned_pairs,
    differentiable=True,
    contiguous="torch.view_as_complex, as in Llama, takes features that lie side by side",
    tolerance=TOLERANCE,
    cases=[
        case("nothing turns at position 0", _SOME[:1], torch.tensor([0])),
        case("(1, 0) in both pairs, one step", torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([1])),
        case("three tokens", _SOME, torch.tensor([0, 1, 2])),
        case("three tokens, later in the text", _SOME, torch.tensor([7, 8, 9])),
        case("base 100", _SOME, torch.tensor([0, 1, 2]), base=100.0),
        case("three pairs", normal(Random(5), 2, 6), torch.tensor([3, 4])),
        edge(case("bf16 at position 1001", clear_bf16(Random(3), 12, _FAR), _FAR)),
        case("two texts of three tokens", normal(Random(6), 2, 3, 6), torch.tensor([0, 1, 2])),
        case("an odd width", torch.ones(1, 5), torch.tensor([1])),
    ],
    hidden_cases=_rope_cases,
    hints=[
        "The angles are those of the sinusoidal table: positions[:, None] * base ** (-torch.arange(0, d, 2) / d).",
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
def swapped_and_repeated(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    wide = x.float()
    angle = torch.outer(positions.float(), 1 / base ** (torch.arange(0, d, 2).float() / d)).repeat_interleave(2, -1)
    swapped = torch.stack((-wide[..., 1::2], wide[..., ::2]), dim=-1).reshape(wide.shape)
    return (wide * angle.cos() + swapped * angle.sin()).to(x.dtype)


@rope.variant
def complex_numbers(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    if x.size(-1) % 2 != 0:
        raise ValueError("odd")
    speed = torch.pow(base, -torch.arange(0, x.size(-1), 2, dtype=torch.float32) / x.size(-1))
    angle = positions.unsqueeze(-1) * speed
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2).type_as(x)


@rope.variant
def token_by_token(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    d = x.shape[-1]
    if d % 2 == 1:
        raise ValueError("odd")
    result = torch.zeros_like(x)
    for token, position in enumerate(positions.tolist()):
        for i in range(0, d, 2):
            angle = position / base ** (i / d)
            a, b = x[..., token, i].float(), x[..., token, i + 1].float()
            result[..., token, i] = a * math.cos(angle) - b * math.sin(angle)
            result[..., token, i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


@rope.variant
def one_large_matrix_in_doubles(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    turned = []
    for token, position in enumerate(positions):
        matrix = torch.eye(d, dtype=torch.float64)
        for i in range(d // 2):
            angle = position.double() * base ** (-2 * i / d)
            matrix[2 * i, 2 * i] = matrix[2 * i + 1, 2 * i + 1] = torch.cos(angle)
            matrix[2 * i + 1, 2 * i], matrix[2 * i, 2 * i + 1] = torch.sin(angle), -torch.sin(angle)
        turned.append(x[..., token, :].double() @ matrix.T)
    return torch.stack(turned, dim=-2).to(x.dtype)


@rope.variant
def both_formulas(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    speeds = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions[:, None] * speeds
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
        "base ** → 10_000.0 **": "You always use 10,000. Use `base`.",
        'raise ValueError("odd") → return torch.cat([both_formulas(x[..., :-1], positions, base), x[..., -1:]], '
        "dim=-1)": "With an odd width the last feature has no partner: raise ValueError.",
        "= positions → = -positions": "You turn the other way. (a, b) should become (a cos − b sin, a sin + b cos).",
        "wide[..., ::2], wide[..., 1::2] → wide.chunk(2, dim=-1) ;; turned.flatten → turned.mT.flatten": "You pair "
        "feature i with i + d/2. That layout is the next exercise; here neighbours are pairs.",
        "* speeds → * speeds[0]": "All your pairs turn at the speed of the first. Pair i turns at base^(−2i/d).",
        "torch.arange(0, d, 2, → torch.arange(d // 2,": "Your exponent is −i/d. Pair i turns at base^(−2i/d).",
        "-torch → -2 * torch": "Your exponent is −4i/d: an arange in steps of 2 is 2i already. Pair i turns at "
        "base^(−2i/d).",
        "[a * cos → [a := a * cos": "You overwrite the first feature of a pair before the second one needs it. Compute "
        "both from the old pair.",
        "positions[:, None] * speeds → (positions[:, None] * speeds).to(x.dtype) ;; x.float() → x": "You round the "
        "angles to the dtype of x. In bf16 an angle of 1001 becomes 1000: keep them in float32.",
        "positions[:, None] → torch.arange(len(positions))[:, None]": "You count the tokens yourself, from 0. A "
        "token's position is in `positions`.",
        "a * cos - b * sin, a * sin + b * cos → a + sin, b + cos": "You add a sine and a cosine. RoPE adds nothing: it "
        "turns the vector and keeps its length.",
        "a * cos - b * sin → a * cos + b * sin": "Your second formula is right and the first is not: it is a cos − b "
        "sin, with a minus.",
        "positions[:, None] * speeds → (positions.to(x.dtype)[:, None] * speeds.to(x.dtype)).double()": "Your angles "
        "are in bf16, which cannot count past 256. Compute in float32 and cast at the end.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype) ;; x.float() → x": "Your cosines "
        "and sines, or the products with them, are in bf16. Compute in float32 and cast at the end.",
        "positions[:, None] * speeds → positions.to(x.dtype)[:, None] * speeds.to(x.dtype) ;; x.float() → x": "You "
        "compute in the dtype of x throughout. In bf16 position 1001 becomes 1000: turn positions and x into float32 "
        "first, and cast the result.",
        "angle.cos(), angle.sin() → angle.cos().to(x.dtype), angle.sin().to(x.dtype)": "You round the angles' cosines "
        "and sines to 16 bits: keep them in float32.",
        "a * sin + b * cos → a * sin - b * cos": "Your second formula has the signs of the first. It is a sin + b cos, "
        "both with a plus.",
        "a * sin + b * cos → -a * sin - b * cos": "Your second formula has the wrong sign throughout. It is a sin + b "
        "cos, both with a plus.",
        "a * cos - b * sin, a * sin + b * cos → a * cos, b * cos": "You multiply by the cosine alone. A turn mixes the "
        "two features of a pair: a cos − b sin.",
        "- b * sin, a * sin → - a * sin, b * sin": "Your features do not mix: the first of a pair needs its partner, a "
        "cos − b sin.",
        "* speeds → * speeds * math.pi / 180": "Your angles are in degrees. θ is in radians, as torch.cos expects it.",
        "-torch → torch": "Your later pairs turn faster. Pair i turns at base^(−2i/d), with a minus.",
        "/ d) → / max(d - 2, 1))": "Your exponent is −2i/(d − 2), so the last pair turns at 1/base. It should be "
        "−2i/d.",
    },
)


rope.slips(
    swapped_and_repeated,
    {
        "torch.stack((-wide[..., 1::2], wide[..., ::2]), dim=-1).reshape(wide.shape) → "
        "torch.cat((-wide[..., d // 2 :], wide[..., : d // 2]), dim=-1)": "Your angles belong to neighbours, but you "
        "mix feature i with feature i + d/2. Neighbours 2i and 2i + 1 are a pair.",
    },
)
