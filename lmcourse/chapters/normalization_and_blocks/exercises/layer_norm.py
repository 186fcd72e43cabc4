"""The exercise on LayerNorm."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.normalization_and_blocks.exercises.inputs import (
    NO_NORM,
    NOTES,
    POWERS,
    TEXT,
    in_bf16,
    scales,
    tokens,
)
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _by_torch(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-5) -> Tensor:
    """Compute in float64, and round once."""
    return F.layer_norm(x.double(), x.shape[-1:], scale.double(), shift.double(), eps).to(x.dtype)


def _ask(name: str, random: Random, *shape: int, dtype: torch.dtype = torch.float32, **eps: float) -> Case:
    d = shape[-1]
    return case(name, tokens(random, *shape, dtype=dtype), scales(random, d), normal(random, d), **eps)


ONE, ZERO = torch.ones(4), torch.zeros(4)
FAR = torch.tensor([[10_000.0, 10_001.0, 10_002.0, 10_005.0], [-8_192.0, -8_192.0, -8_191.0, -8_189.0]])
"""Features whose mean is exact in fp32, although the square of the mean is not."""
ROUNDED = "layer_norm(x, scale, shift).float()"
"""An expression with the result in fp32: the tolerance of bf16 would hide an answer that rounds twice."""


def _bf16(name: str, seed: int, mean: float) -> Case:
    x, scale, shift = in_bf16(seed, mean)
    return script(name, ROUNDED, x=x, scale=scale, shift=shift)


BROKEN = torch.tensor([[1.0, 2.0, 4.0, 1.0], [3.0, math.nan, 1.0, 0.0], [0.0, 1.0, -1.0, 5.0]])


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    wide = torch.float64
    return [
        _ask("one feature", fixed, 3, 1),
        _ask("two features", fixed, 2, 2, 2),
        _ask("a single vector", fixed, 6),
        _ask("more axes", fixed, 2, 1, 3, 5),
        _ask("as many tokens as features", fixed, 5, 5),
        case("far from zero", FAR, POWERS, torch.tensor([1.0, -1.0, 0.5, 0.0])),
        case("small features", torch.tensor([[0.001, -0.003, 0.002, 0.004]]), POWERS, ONE),
        case("tiny features", 1e-12 * NOTES, ONE, ONE),
        case("another eps", NOTES / 50, ONE, ZERO, eps=3.0),
        case("16 bits", (8 * NOTES).half(), POWERS.half(), ZERO.half()),
        case("16 bits", (10 * NOTES).bfloat16(), ONE, ZERO),
        case("16 bits", -NOTES.half(), POWERS, ZERO),
        # the mean is not an fp16 number
        case("16 bits", torch.tensor([[1000.0, 1001.0, 1000.0, 1002.0]]).half(), ONE, ZERO),
        _bf16("bf16, rounded once", 124, 30.0),
        _ask("double precision", fixed, 3, 4, dtype=wide),
        case("double precision", tokens(fixed, 2, 4, dtype=wide), scales(fixed, 4, wide), normal(fixed, 4, dtype=wide)),
        case("a token that is not a number", BROKEN, ONE, ZERO),
        _ask("other shapes", random, random.randint(2, 4), random.randint(2, 4), random.randint(3, 9)),
        _ask("other shapes", random, random.randint(2, 5), random.randint(3, 9), eps=random.uniform(0.1, 2.0)),
    ]


_FIXED = Random(5)

layer_norm = Exercise(
    "layer_norm",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("the vector from above", NOTES, ONE, ZERO),
        case("with scale and shift", TEXT, torch.tensor([1.0, 2.0, 3.0, 0.5]), torch.tensor([0.0, 1.0, -1.0, 10.0])),
        _ask("two texts of three tokens", _FIXED, 2, 3, 4),
        edge(case("all features alike", torch.full((1, 1, 4), 3.0), ONE, torch.tensor([1.0, 2.0, 3.0, 4.0]))),
        case("features so small that eps counts", 1e-5 * TEXT, ONE, ZERO),
        case("another eps", TEXT / 200, ONE, ZERO, eps=0.5),
        case("a mean of 10,000", FAR[None, :1], ONE, ZERO),
        edge(case("in fp16, the parameters in fp32", (4 * TEXT).half(), ONE, ZERO)),
        edge(case("in bf16, with a mean of 30", *in_bf16(25, 30.0))),
        edge(_bf16("in bf16, every number", 25, 30.0)),
        edge(case("in fp64", (TEXT - 1).double() / 3, ONE, ZERO)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Mean and variance of each token: dim=-1, keepdim=True. Keep x − mean, you need it twice.",
        "The variance is the mean of the squares of x − mean; eps is added to it, then comes the root.",
        "Convert first: `torch.promote_types(x.dtype, torch.float32)` is float32 for 16 bits and float64 for float64. "
        "Go back to x.dtype in the very last step.",
    ],
    forbid=NO_NORM,
)


layer_norm.equivalent_mutant(
    "wide = x.to(torch.promote_types(x.dtype, torch.float32)) → "
    "wide = x.to(torch.promote_types(torch.float32, x.dtype))",
    "the wider of two dtypes is the same in either order",
)


@layer_norm.variant
def with_var(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-5) -> Tensor:
    wide = x.double()
    variance, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
    return ((wide - mean) * torch.rsqrt(variance + eps) * scale + shift).to(x.dtype)


@layer_norm.variant
def in_fp32_or_fp64(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-5) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    centred = wide - wide.sum(-1, keepdim=True) / x.shape[-1]
    normed = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
    return (scale * normed + shift).to(x.dtype)


@layer_norm.variant
def with_a_matrix(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-5) -> Tensor:
    d = x.size(-1)
    wide = x.to(torch.float64)
    centred = wide @ (torch.eye(d, dtype=torch.float64) - torch.full((d, d), 1 / d, dtype=torch.float64))
    squares = torch.einsum("...d, ...d -> ...", centred, centred).unsqueeze(-1)
    return torch.addcmul(shift.double(), centred / (squares / d + eps).sqrt(), scale.double()).type(x.dtype)


@layer_norm.variant
def step_by_step(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-5) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = wide.mean(dim=-1, keepdim=True)
    variance = (wide - mean).square().mean(dim=-1, keepdim=True)
    normed = (wide - mean) / (variance + eps).sqrt()
    return (normed * scale + shift).to(x.dtype)


layer_norm.slips(
    step_by_step,
    {
        "scale + shift → (scale + shift)": "Your shift multiplies, as in x̂·(scale + shift). It is added after the "
        "scale.",
        "wide.mean(dim=-1 → wide.mean(dim=-2 ;; square().mean(dim=-1 → square().mean(dim=-2": "You normalise over the "
        "tokens of a text: every position now depends on later ones, and the future leaks in.",
        "wide.mean(dim=-1 → wide.mean(dim=1 ;; square().mean(dim=-1 → square().mean(dim=1": "You normalise over axis "
        "1, the tokens of a text: every position now depends on later ones. The features are the last axis, −1.",
        "wide.mean(dim=-1 → wide.mean(dim=0 ;; square().mean(dim=-1 → square().mean(dim=0": "You normalise over the "
        "first axis. The features are the last one.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x": "You compute in the dtype of x until the scale comes "
        "in. In 16 bits mean and variance lose digits: convert x first.",
        "wide.mean(dim=-1, keepdim=True) → wide.mean() ;; square().mean(dim=-1, keepdim=True) → square().mean()": "You "
        "use one mean for all numbers of `x`. Every token has its own.",
        "wide.mean(dim=-1 → wide.mean(dim=(-2, -1) ;; square().mean(dim=-1 → square().mean(dim=(-2, -1)": "You use one "
        "mean for a whole text. Every token has its own.",
        "(wide - mean).square().mean(dim=-1, keepdim=True) → wide.var(dim=-1, keepdim=True)": "Your variance divides "
        "by d − 1, as torch does by default. Here it is the mean of the squares: divide by d.",
        "(variance + eps).sqrt() → (variance.sqrt() + eps)": "You add eps to the root. Add it to the variance, under "
        "the root.",
        " + eps → ": "Your root has no eps: small features become too large, and equal ones become 0/0.",
        "(variance + eps).sqrt() → (wide.std(dim=-1, keepdim=True) + eps)": "You divide by torch's std() plus eps. "
        "There are two mistakes: std() divides by d − 1, and eps belongs under the root.",
        "(variance + eps).sqrt() → (variance.sqrt() + eps**0.5)": "You take the roots of variance and eps separately. "
        "Add eps first, then take one root.",
        ".square() → .abs() ;; .sqrt() → ": "You divide by a mean of absolute values. Take the root of the mean of the "
        "squares.",
        "(variance + eps) → variance.clamp(min=eps)": "You take the larger of variance and eps. Here eps is added to "
        "every variance.",
        "normed * scale → normed.to(x.dtype) * scale": "You round to 16 bits before scale and shift, and again after "
        "them. Round once, in the last step.",
        "scale + shift → scale.to(x.dtype) + shift.to(x.dtype)": "You round scale and shift to the dtype of x. They "
        "are fp32 numbers: use them as they are, and round the result.",
        "(normed * scale + shift).to(x.dtype) → normed.to(x.dtype) * scale.to(x.dtype) + shift.to(x.dtype)": "You "
        "round the normalised features, scale and shift to 16 bits, and then the result again. Round once, in the last "
        "step.",
        "variance + eps → variance + 1e-5": "You always use 1e-5. Use the argument eps.",
        "normed * scale + shift → (normed + shift) * scale": "You multiply the shift by the scale as well. Add the "
        "shift after scaling.",
        "(wide - mean).square().mean(dim=-1, keepdim=True) → "
        "wide.square().mean(dim=-1, keepdim=True) - mean.square()": "E[x²] − E[x]² subtracts two large numbers: far "
        "from zero, fp32 loses every digit of the variance.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; "
        "scale + shift → scale.to(x.dtype) + shift.to(x.dtype)": "You compute in 16 bits: in fp16 400² is infinite, "
        "and bf16 loses digits. Convert to fp32 first, and cast back at the end.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; shift).to(x.dtype) → shift)": "You leave the dtypes "
        "to torch: 16-bit inputs lose digits, and fp32 parameters make the result fp32. Convert x first, cast it last.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() ;; "
        "(normed * scale + shift).to(x.dtype) → normed.to(x.dtype) * scale + shift": "You cast back to the dtype of x "
        "before scale and shift, which convert it to fp32 again. Cast in the very last step.",
        "(normed * scale + shift).to(x.dtype) → normed.to(x.dtype) * scale + shift": "You round to the dtype of x "
        "before scale and shift. With fp32 parameters the result is fp32, with the precision of 16 bits: cast after "
        "the shift.",
        "torch.promote_types(x.dtype, torch.float32) → torch.float32 if x.dtype == torch.float16 else x.dtype": "You "
        "convert only fp16 to fp32. bf16 has the range of fp32 but only 8 bits of significand: your variance loses "
        "digits.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() ;; "
        "scale + shift → scale.float() + shift.float()": "You compute in fp32 even for fp64 inputs, which loses half "
        "of their digits.",
        "shift).to(x.dtype) → shift)": "Your result has a different dtype from x. Cast it back, or the whole model "
        "silently becomes fp32.",
        "wide.mean(dim=-1, keepdim=True) → 0": "You do not subtract the mean. That is a different norm, the one of the "
        "next exercise.",
        ".sqrt() → ": "You divide by the variance. Take its root, or twice the input gives half the output.",
    },
)
