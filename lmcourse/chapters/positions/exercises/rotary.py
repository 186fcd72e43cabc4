"""The exercise on RoPE as in the paper: it rotates neighbouring features as pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BASE = 10_000.0
# An fp32 angle of a hundred radians has an error of up to 3e-5, and features are a few times larger than 1.
TOLERANCE = Tolerance(0.0, 2e-4)


def turned(x: Tensor, angle: Tensor) -> Tensor:
    """Multiply neighbouring features, as complex numbers, by e^(i angle), in float64; return the dtype of x."""
    pairs = torch.view_as_complex(rearrange(x.double(), "... (pair two) -> ... pair two", two=2).contiguous())
    result = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(result).flatten(-2).to(x.dtype)


def evens_first(d: int) -> Tensor:
    """The order that moves the features of neighbouring pairs half the width apart: 0, 2, 4, …, 1, 3, 5, …"""
    return torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])


def turned_pairs(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    """Apply RoPE with neighbouring features as pairs."""
    return turned(x, angles(positions, x.shape[-1], base))


def clear_bf16(random: Random, width: int, positions: Tensor) -> Tensor:
    """Tokens in bf16 whose rotated features round to the same number for every rounding of an fp32 angle."""
    angle = angles(positions, width)
    while True:
        x = normal(random, len(positions), width).bfloat16()
        exact = turned(x.double(), angle)
        low, high = ((exact + shift).bfloat16().double() for shift in (-TOLERANCE.absolute, TOLERANCE.absolute))
        if (high - low <= TOLERANCE.absolute).all():
            return x


def _both_formulas(x: Tensor, formulas: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """Apply two formulas to the two features of each pair, in float64; return the dtype of x."""
    return torch.stack(formulas(x.double()[..., ::2], x.double()[..., 1::2]), dim=-1).flatten(-2).to(x.dtype)


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


_UNIT = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
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
        case("(1, 0) in both pairs, one step", _UNIT, torch.tensor([1])),
        case("three tokens", _SOME, torch.tensor([0, 1, 2])),
        case("three tokens, later in the text", _SOME, torch.tensor([7, 8, 9])),
        case("base 100", _SOME, torch.tensor([0, 1, 2]), base=100.0),
        case("three pairs", normal(Random(5), 2, 6), torch.tensor([3, 4])),
        edge(case("bf16 at position 1001", clear_bf16(Random(3), 12, _FAR), _FAR)),
        case("an odd width", torch.ones(1, 3), torch.tensor([1])),
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


@rope.misconception("You swapped cosine and sine. At position 0 the angle is 0, so nothing may change.")
def cosine_for_sine(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned(x, math.pi / 2 - angles(positions, x.shape[-1], base))


@rope.misconception(
    "You swapped cosine and sine: at position 0 your pair (a, b) becomes (−b, a), but nothing may turn there."
)
def a_quarter_turn_ahead(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    a, b = x.double()[..., ::2], x.double()[..., 1::2]
    both = [a * angle.sin() - b * angle.cos(), a * angle.cos() - b * angle.sin()]
    return torch.stack(both, dim=-1).flatten(-2).to(x.dtype)


@rope.misconception("Your two parts of each pair are swapped: the real part comes first, in feature 2i.")
def parts_swapped(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return rearrange(
        rearrange(turned_pairs(x, positions, base), "... (pair two) -> ... pair two", two=2).flip(-1),
        "... pair two -> ... (pair two)",
    )


@rope.misconception("You put all first features before all second ones. Each pair stays where it was: 2i and 2i + 1.")
def laid_in_halves(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions, base)[..., evens_first(x.shape[-1])]


@rope.misconception("You always use 10,000. Use `base`.")
def always_ten_thousand(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions)


@rope.misconception("With an odd width the last feature has no partner: raise ValueError.")
def odd_width_accepted(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    if x.shape[-1] % 2 == 0:
        return turned_pairs(x, positions, base)
    return torch.cat([turned_pairs(x[..., :-1], positions, base), x[..., -1:]], dim=-1)


@rope.misconception("You turn the other way. (a, b) should become (a cos − b sin, a sin + b cos).")
def clockwise(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, -positions, base)


@rope.misconception("You pair feature i with i + d/2. That layout is the next exercise; here neighbours are pairs.")
def halves(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    order = evens_first(x.shape[-1])
    return turned_pairs(x[..., order.argsort()], positions, base)[..., order]


@rope.misconception("All your pairs turn at the speed of the first. Pair i turns at base^(−2i/d).")
def one_speed(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned(x, angles(positions, x.shape[-1], 1.0))


@rope.misconception("Your exponent is −i/d. Pair i turns at base^(−2i/d).")
def half_the_exponent(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions, base**0.5)


@rope.misconception("Your exponent is −4i/d: an arange in steps of 2 is 2i already. Pair i turns at base^(−2i/d).")
def twice_the_exponent(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions, base**2)


@rope.misconception(
    "You overwrite the first feature of a pair before the second one needs it. Compute both from the old pair."
)
def overwritten(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos(), angle.sin()
    return _both_formulas(x, lambda a, b: (a * cos - b * sin, (a * cos - b * sin) * sin + b * cos))


@rope.misconception(
    "Your angles belong to neighbours, but you mix feature i with feature i + d/2. Neighbours 2i and 2i + 1 are a pair."
)
def halves_mixed(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base).repeat_interleave(2, dim=-1)
    first, second = x.double().chunk(2, dim=-1)
    return (x.double() * angle.cos() + torch.cat([-second, first], dim=-1) * angle.sin()).to(x.dtype)


@rope.misconception(
    "You round the angles to the dtype of x. In bf16 an angle of 1001 becomes 1000: keep them in float32."
)
def angles_rounded(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base).to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


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


@rope.misconception(
    "Your cosines and sines, or the products with them, are in bf16. Compute in float32 and cast at the end."
)
def products_in_bf16(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@rope.misconception(
    "You compute in the dtype of x throughout. In bf16 position 1001 becomes 1000: turn positions and x into float32 "
    "first, and cast the result."
)
def all_in_the_dtype_of_x(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    speed = angles(torch.tensor(1), x.shape[-1], base).to(x.dtype)
    angle = positions.to(x.dtype)[:, None] * speed
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


@rope.misconception("You round the angles' cosines and sines to 16 bits: keep them in float32.")
def waves_rounded(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = (wave.to(x.dtype).double() for wave in (angle.cos(), angle.sin()))
    return _both_formulas(x, lambda a, b: (a * cos - b * sin, a * sin + b * cos))


@rope.misconception("Your second formula has the signs of the first. It is a sin + b cos, both with a plus.")
def minus_twice(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos(), angle.sin()
    return _both_formulas(x, lambda a, b: (a * cos - b * sin, a * sin - b * cos))


@rope.misconception("Your second formula has the wrong sign throughout. It is a sin + b cos, both with a plus.")
def conjugated(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos(), angle.sin()
    return _both_formulas(x, lambda a, b: (a * cos - b * sin, -a * sin - b * cos))


@rope.misconception("You multiply by the cosine alone. A turn mixes the two features of a pair: a cos − b sin.")
def cosines_alone(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    cos = angles(positions, x.shape[-1], base).cos()
    return _both_formulas(x, lambda a, b: (a * cos, b * cos))


@rope.misconception("Your features do not mix: the first of a pair needs its partner, a cos − b sin.")
def without_the_partner(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos(), angle.sin()
    return _both_formulas(x, lambda a, b: (a * cos - a * sin, b * sin + b * cos))


@rope.misconception("Your angles are in degrees. θ is in radians, as torch.cos expects it.")
def in_degrees(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned(x, angles(positions, x.shape[-1], base) * math.pi / 180)


@rope.misconception("Your later pairs turn faster. Pair i turns at base^(−2i/d), with a minus.")
def faster_and_faster(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    return turned_pairs(x, positions, 1 / base)


@rope.misconception("Your exponent is −2i/(d − 2), so the last pair turns at 1/base. It should be −2i/d.")
def ends_at_the_last_pair(x: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    pairs = x.shape[-1] // 2
    speeds = base ** (-torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1))
    angles(positions, x.shape[-1])  # raises ValueError for an odd width
    return turned(x, positions.double()[:, None] * speeds)


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
