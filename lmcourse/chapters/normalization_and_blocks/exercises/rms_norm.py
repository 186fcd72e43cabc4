"""The exercise on RMSNorm."""

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


def _by_torch(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    """Compute in float64, and round once."""
    return F.rms_norm(x.double(), x.shape[-1:], scale.double(), eps).to(x.dtype)


def _ask(name: str, random: Random, *shape: int, dtype: torch.dtype = torch.float32, **eps: float) -> Case:
    return case(name, tokens(random, *shape, dtype=dtype), scales(random, shape[-1]), **eps)


ONE = torch.ones(4)
IN_16_BITS = "You square in 16 bits: in fp16 400² is infinite and your result 0, and bf16 loses digits."
ROUNDED = "rms_norm(x, scale).float()"
"""An expression with the result in fp32: the tolerance of bf16 would hide an answer that rounds twice."""


def _bf16(name: str, seed: int) -> Case:
    x, scale, _ = in_bf16(seed, 3.0)
    return script(name, ROUNDED, x=x, scale=scale)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    wide = torch.float64
    return [
        _ask("one feature", fixed, 3, 1),
        _ask("two features", fixed, 2, 2, 2),
        _ask("a single vector", fixed, 6),
        _ask("more axes", fixed, 2, 1, 3, 5),
        _ask("as many tokens as features", fixed, 5, 5),
        case("small features", 1e-5 * NOTES, ONE),
        case("tiny features", 1e-12 * NOTES, POWERS),
        case("large features", -1e12 * NOTES, POWERS),
        case("another eps", NOTES / 50, ONE, eps=3.0),
        case("16 bits", torch.tensor([[65504.0, -65504.0, 0.0, 65504.0]]).half(), POWERS.half()),
        case("16 bits", (10 * NOTES).bfloat16(), ONE),
        _bf16("bf16, rounded once", 379),
        case("16 bits", torch.tensor([[0.001, 0.003, -0.002, 0.0]]).half(), POWERS),
        _ask("double precision", fixed, 3, 4, dtype=wide),
        case("double precision", tokens(fixed, 2, 4, dtype=wide), scales(fixed, 4, wide)),
        case("a token that is not a number", torch.tensor([[1.0, 2.0], [math.nan, 1.0], [0.0, -1.0]]), torch.ones(2)),
        _ask("other shapes", random, random.randint(2, 4), random.randint(2, 4), random.randint(3, 9)),
        _ask("other shapes", random, random.randint(2, 5), random.randint(3, 9), eps=random.uniform(0.1, 2.0)),
    ]


_FIXED = Random(6)

rms_norm = Exercise(
    "rms_norm",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("the vector from above", NOTES, ONE),
        case("with a scale", TEXT, torch.tensor([1.0, 2.0, 3.0, 0.5])),
        _ask("two texts of three tokens", _FIXED, 2, 3, 4),
        edge(case("zeros", torch.zeros(1, 1, 4), ONE)),
        case("features so small that eps counts", TEXT * 1e-5, ONE),
        case("another eps", TEXT / 200, ONE, eps=0.5),
        edge(case("twice the vector, in fp16", (2 * TEXT).half(), ONE)),
        edge(case("near the top of fp16", torch.tensor([[60000.0, -60000.0, 0.0, 30000.0]]).half(), ONE)),
        edge(_bf16("in bf16, the scale in fp32: every number", 324)),
        edge(case("in fp64", (TEXT - 1).double() / 3, ONE)),
    ],
    hidden_cases=_hidden,
    hints=[
        "The mean of x² over the last axis, with keepdim=True. No mean of x anywhere.",
        "x / √(mean square + eps), times the scale.",
        "Convert before you square: `torch.promote_types(x.dtype, torch.float32)`. Go back to x.dtype at the very end.",
    ],
    forbid=NO_NORM,
)


rms_norm.equivalent_mutant(
    "wide = x.to(torch.promote_types(x.dtype, torch.float32)) → "
    "wide = x.to(torch.promote_types(torch.float32, x.dtype))",
    "the wider of two dtypes is the same in either order",
)


@rms_norm.variant
def with_rsqrt(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt((wide * wide).sum(-1, keepdim=True) / x.shape[-1] + eps) * scale).to(x.dtype)


@rms_norm.variant
def in_fp32_or_fp64(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.double() if x.dtype == torch.float64 else x.float()
    normed = wide / (wide.pow(2).mean(dim=-1, keepdim=True) + eps) ** 0.5
    return (scale * normed).to(x.dtype)


@rms_norm.variant
def with_the_length(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.to(torch.float64)
    length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    return (wide * scale / torch.hypot(length / math.sqrt(x.size(-1)), torch.tensor(eps).double().sqrt())).to(x.dtype)


@rms_norm.variant
def step_by_step(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    square = wide.square().mean(dim=-1, keepdim=True)
    normed = wide / (square + eps).sqrt()
    return (normed * scale).to(x.dtype)


rms_norm.slips(
    step_by_step,
    {
        "square = wide → wide = wide - wide.mean(dim=-1, keepdim=True)\n    square = wide": "You subtract the mean. "
        "RMSNorm subtracts nothing: it divides, and multiplies by the scale.",
        "wide.square().mean(dim=-1, keepdim=True) → wide.var(dim=-1, correction=0, keepdim=True)": "You divide by the "
        "standard deviation, which subtracts the mean. Use the mean of the squares.",
        ".mean( → .sum(": "You divide by the length: your numbers are √d times too small. Take the *mean* of the "
        "squares.",
        ".sqrt() → ": "You divide by the mean square. Take its root.",
        "(square + eps).sqrt() → (square.sqrt() + eps)": "You add eps to the root. Add it to the mean square, under "
        "the root.",
        " + eps → ": "Your root has no eps: small features become too large.",
        "(square + eps).sqrt() → (square.sqrt() + eps**0.5)": "You take the roots of mean square and eps separately. "
        "Add eps first, then take one root.",
        ".square() → .abs() ;; .sqrt() → ": "You divide by the mean of absolute values. Take the root of the mean of "
        "the squares.",
        "(square + eps) → square.clamp(min=eps)": "You take the larger of mean square and eps. Here eps is added to "
        "every mean square.",
        "square + eps → square + 1e-6": "You always use 1e-6. Use the argument eps.",
        "square + eps → square + 1e-5": "You always use 1e-5. Use the argument eps; its default is 1e-6.",
        "wide.square().mean(dim=-1, keepdim=True) → x.square().mean(dim=-1, keepdim=True).to(wide.dtype)": "You "
        "convert after you have squared. In 16 bits squares overflow or lose digits: convert first.",
        "wide.square().mean(dim=-1, keepdim=True) → x.square().mean(dim=-1, keepdim=True).float() ;; "
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float()": "You convert after you have squared, and to "
        "fp32 even if x is fp64. Convert first, and only 16 bits.",
        "normed * scale → normed.to(x.dtype) * scale": "You round to 16 bits before the scale, and again after it. "
        "Round once, at the end.",
        "* scale → * scale.to(x.dtype)": "You round the scale to the dtype of x. Use it as it is, and round the "
        "result.",
        "(normed * scale).to(x.dtype) → normed.to(x.dtype) * scale.to(x.dtype)": "You round the normalised features, "
        "the scale and their product. Multiply in fp32, and round once, at the end.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() ;; "
        "(normed * scale).to(x.dtype) → normed.to(x.dtype) * scale.to(x.dtype)": "You compute in fp32 whatever x is, "
        "and round before the scale. Keep fp64, multiply in the wider dtype, and round once.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() ;; "
        "(normed * scale).to(x.dtype) → normed.to(x.dtype) * scale": "You cast back to the dtype of x before the "
        "scale, which converts it to fp32 again. Multiply first, cast last.",
        "torch.promote_types(x.dtype, torch.float32) → torch.float32 if x.dtype == torch.float16 else x.dtype": "You "
        "convert only fp16 to fp32. bf16 has the range of fp32 but only 8 bits of significand: you compute with 2.4 "
        "digits.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x": IN_16_BITS,
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; * scale → * scale.to(x.dtype)": IN_16_BITS,
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; (normed * scale).to(x.dtype) → normed * scale": "You "
        "leave the dtypes to torch: squares overflow in fp16, and fp32 scales make the result fp32. Convert x first, "
        "cast it last.",
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x.float() ;; * scale → * scale.float()": "You compute in "
        "fp32 even for fp64 inputs, which loses half of their digits.",
        "scale).to(x.dtype) → scale)": "Your result has a different dtype from x. Cast it back, or the whole model "
        "silently becomes fp32.",
        "* scale → * (1 + scale)": "You multiply by 1 + scale. That is how Gemma *stores* its scale; here a scale of 1 "
        "means unchanged.",
        " * scale → ": "The scale is missing.",
        "dim=-1 → dim=-2": "You take the mean over the tokens of a text. Take it over the features of each token.",
        "dim=-1 → dim=1": "You take the mean over axis 1, the tokens of a text: every position now depends on later "
        "ones. The features are the last axis, −1.",
        "dim=-1 → dim=0": "You take the mean over the first axis. The features are the last one.",
        ".mean(dim=-1, keepdim=True) → .mean()": "You use one root mean square for all numbers of `x`. Every token has "
        "its own.",
        "dim=-1 → dim=(-2, -1)": "You use one root mean square for a whole text. Every token has its own.",
    },
)


rms_norm.slips(
    with_rsqrt,
    {
        "wide = x.to(torch.promote_types(x.dtype, torch.float32)) → wide = x": IN_16_BITS,
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; * scale) → * scale.to(x.dtype))": IN_16_BITS,
        "x.to(torch.promote_types(x.dtype, torch.float32)) → x ;; scale).to(x.dtype) → scale)": IN_16_BITS,
    },
)
