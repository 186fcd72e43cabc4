"""The exercise on the backward pass of LayerNorm."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal64

Grads = dict[str, Tensor]


def _by_torch(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    """Compute in float64, and round at the end."""
    wide, wide_gain, bias = tracked(x.double(), gain.double(), torch.zeros_like(gain).double())
    y = torch.nn.functional.layer_norm(wide, gain.shape, wide_gain, bias, eps)
    grads = grads_of((y * dy).sum(), wide, wide_gain, bias)
    return {name: grad.to(x.dtype) for name, grad in zip(("x", "gain", "bias"), grads, strict=True)}


def _ask(name: str, random: Random, *shape: int, dtype: torch.dtype = torch.float64, **eps: float) -> Case:
    x, gain, dy = (normal64(random, *shape) + 0.5, normal64(random, shape[-1]) + 1.0, normal64(random, *shape))
    return _grad("x", name, x.to(dtype), gain.to(dtype), dy.to(dtype), **eps)


def _grad(which: str, name: str, x: Tensor, gain: Tensor, dy: Tensor, **eps: float) -> Case:
    """A case on one gradient, so that one mistake does not cost the points of all."""
    call = f"layernorm_backward(x, gain, dy{', eps' if eps else ''})"
    return script(name, f'{call}["{which}"]', x=x, gain=gain, dy=dy, **eps)


def _again(of: Case, which: str, name: str) -> Case:
    """The same inputs, and another gradient."""
    return _grad(which, name, **of.kwargs)


def _inputs(random: Random) -> list[Case]:
    fixed = Random(7)
    hardly = 0.5 + 3e-3 * normal64(fixed, 2, 6)  # a variance of about eps
    cases = [
        _ask("a single row", fixed, 4),
        _ask("one feature", fixed, 3, 1),
        _ask("other eps", fixed, 3, 5, eps=0.25),
        _grad("x", "rows that hardly vary", hardly, normal64(fixed, 6), normal64(fixed, 2, 6)),
        _grad("x", "rows that do not vary", 0 * hardly + 0.5, normal64(fixed, 6), normal64(fixed, 2, 6)),
        _ask("single precision", fixed, 2, 3, 16, dtype=torch.float32),
        _ask("other shapes", random, 3, 7),
        _ask("other shapes", random, 2, 1, 3, 4),
        _ask("a single row", random, 9),
        _ask("other eps", random, 3, 5, eps=random.uniform(0.1, 0.5)),
        _ask("single precision", random, 2, 3, 16, dtype=torch.float32),
    ]
    return cases + [_again(each, which, f"{which}: other inputs") for which in ("gain", "bias") for each in cases]


_FIXED = Random(5)
_ROW = [torch.tensor(row) for row in ([[1.0, 2.0, 6.0]], [1.0, 1.0, 1.0], [[1.0, 0.0, 0.0]])]
_TWO, _TEXTS = _ask("two rows with a gain", _FIXED, 2, 4), _ask("a batch of texts", _FIXED, 2, 3, 5)

layernorm_backward = Exercise(
    "layernorm_backward",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_by_torch,
    cases=[
        _grad("x", "a row of three", *_ROW),
        _TWO,
        _TEXTS,
        _ask("a large eps", _FIXED, 2, 4, eps=0.5),
        *(_again(_TEXTS, which, f"{which}, a batch of texts") for which in ("gain", "bias")),
    ],
    hidden_cases=_inputs,
    hints=[
        "Write the forward pass in atomic steps first: mean, variance, s = sqrt(variance + eps), x̂ = (x − mean) / s. "
        "Then y = gain · x̂ + bias.",
        "gain and bias are shared by all rows: their gradients, dy · x̂ and dy, are summed over every axis but the "
        "last.",
        "With g = dy · gain and means over the last axis: dx = (g − mean(g) − x̂ · mean(g · x̂)) / s.",
    ],
    forbid=[".layer_norm", ".native_layer_norm", ".native_layer_norm_backward", *NO_AUTOGRAD],
)


@layernorm_backward.variant
def row_by_row(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> dict[str, Tensor]:
    d = x.shape[-1]
    dx, d_gain, d_bias = torch.empty(x.shape, dtype=x.dtype), torch.zeros_like(gain), torch.zeros_like(gain)
    for row, grad, out in zip(x.reshape(-1, d), dy.reshape(-1, d), dx.view(-1, d), strict=True):
        mean = sum(row) / d
        s = math.sqrt(sum((row - mean) ** 2) / d + eps)
        normed = (row - mean) / s
        d_gain += grad * normed
        d_bias += grad
        g = grad * gain
        out.copy_(g / s - g.sum() / d / s - normed / d * torch.dot(g, normed) / s)
    return {"x": dx, "gain": d_gain, "bias": d_bias}


@layernorm_backward.variant
def path_after_path(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> dict[str, Tensor]:
    """Go backwards through each node of the forward pass, which uses the textbook's E[x²] − E[x]²."""
    d = x.shape[-1]
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x**2).mean(dim=-1, keepdim=True) - mean**2
    inverse = torch.rsqrt(variance + eps)
    centred = x - mean
    d_normed = dy * gain
    d_variance = (d_normed * centred).sum(-1, keepdim=True) * -0.5 * inverse**3
    d_mean = -(d_normed * inverse).sum(-1, keepdim=True) - 2 * d_variance * centred.mean(-1, keepdim=True)
    rows = (dy * centred * inverse).reshape(-1, d)
    return {
        "x": d_normed * inverse + d_variance * 2 * centred / d + d_mean / d,
        "gain": rows.sum(dim=0),
        "bias": dy.reshape(-1, d).sum(dim=0),
    }


@layernorm_backward.variant
def by_the_formula(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> dict[str, Tensor]:
    s = (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
    normed = (x - x.mean(-1, keepdim=True)) / s
    g = dy * gain
    through_mean = g.mean(-1, keepdim=True)
    through_spread = normed * (g * normed).mean(-1, keepdim=True)
    dx = (g - through_mean - through_spread) / s
    dgain = (dy * normed).reshape(-1, len(gain)).sum(0)
    dbias = dy.reshape(-1, len(gain)).sum(0)
    return {"x": dx, "gain": dgain, "bias": dbias}


layernorm_backward.slips(
    by_the_formula,
    {
        " - through_mean - through_spread → ": "You treat mean and spread as constants. Every feature changes both, "
        "and so changes every output of its row.",
        " - through_spread → ": "You have the path through the mean. The path through the spread, − x̂ · mean(g · x̂), "
        "is missing.",
        " - through_mean → ": "You have the path through the spread. The path through the mean, − mean(g), is missing. "
        "RMSNorm has no such path, but LayerNorm has one.",
        "x.var(-1, correction=0, keepdim=True) → x.square().mean(-1, keepdim=True) ;; (x - x.mean(-1, keepdim=True)) → "
        "x ;;  - through_mean → ": "This is the backward pass of RMSNorm, which subtracts no mean. In LayerNorm x̂ is "
        "(x − μ)/s, and there is a path through μ.",
        'return {"x": dx, "gain": dgain, "bias": dbias} → return dx, dgain, dbias': "You return the gradients without "
        "their names. Return a dict with the names of the exercise.",
        "g = dy * gain → g = dy": "dx ignores the gain: what reaches x̂ is dy · gain.",
        "correction=0 → correction=1": "Your variance divides by d − 1, torch's default. LayerNorm divides by d: "
        "correction=0.",
        "(x.var(-1, correction=0, keepdim=True) + eps).sqrt() → x.var(-1, "
        "correction=0, keepdim=True).sqrt() + eps": "You add eps to the standard deviation. Add it to the variance, "
        "under the root.",
        "(dy * normed).reshape(-1, len(gain)).sum(0) → dy * normed ;; dy.reshape(-1, len(gain)).sum(0) → dy": "You "
        "return one gradient of gain and bias per row. All rows share them: sum over every axis but the last.",
        "(dy * normed).reshape(-1, len(gain)) → (dy * normed) ;; dy.reshape(-1, len(gain)) → dy": "You sum the "
        "gradients of gain and bias over the first axis only. A batch of texts has two axes in front of the features: "
        "sum over both.",
        "dy * normed → dy": "Your gradient of the gain lacks the factor x̂. That is the gradient of the bias.",
        "(dy * normed).reshape(-1, len(gain)).sum(0) → (dy * normed).reshape(-1, len(gain)).mean(0) ;; dy.reshape(-1, "
        "len(gain)).sum(0) → dy.reshape(-1, len(gain)).mean(0)": "You average the gradients of gain and bias over the "
        "rows. Shared parameters add their gradients up.",
        "through_spread) / s → through_spread)": "dx lacks the factor 1/s: each path from x to x̂ has it.",
        "- through_spread → + through_spread": "In dx the path through the spread has a plus. Where s grows, x̂ "
        "shrinks: subtract it.",
        "g.mean(-1 → g.sum(-1 ;; (g * normed).mean(-1 → (g * normed).sum(-1": "In dx you sum over the features where "
        "the mean belongs: ∂μ/∂x has a factor 1/d, and so has ∂s/∂x.",
        "dy * normed → dy * x": "The gradient of the gain has a factor x̂. You multiply by x itself.",
        "dy.reshape(-1, len(gain)) → g.reshape(-1, len(gain))": "The gradient of the bias is dy, summed over the rows. "
        "Yours has the gain as a factor.",
        "x.var(-1, correction=0, keepdim=True) → x.var(correction=0) ;; x.mean(-1, keepdim=True) → x.mean() ;; "
        "g.mean(-1, keepdim=True) → g.mean() ;; (g * normed).mean(-1, keepdim=True) → (g * normed).mean()": "You take "
        "mean and spread over the whole tensor. Each row has its own: the last axis only.",
        "g = dy * gain → g = dy ;; through_spread) / s → through_spread) / s * gain": "You multiply by the gain at the "
        "end. It belongs to dy first: g = dy · gain, and the means are of g.",
        "through_spread) / s → through_spread) / s**2": "dx has a factor 1/s. You divide by s², the variance.",
        " + eps → ": "You leave out eps. It is added to the variance, under the root.",
    },
)
