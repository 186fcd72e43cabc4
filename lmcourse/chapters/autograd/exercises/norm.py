"""The exercise on the backward pass of LayerNorm."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, case
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
    x, gain, dy = (
        normal64(random, *shape) + 0.5,
        normal64(random, shape[-1]) + 1.0,
        normal64(random, *shape),
    )
    return case(name, x.to(dtype), gain.to(dtype), dy.to(dtype), **eps)


def _inputs(random: Random) -> list[Case]:
    fixed = Random(7)
    hardly = 0.5 + 3e-3 * normal64(fixed, 2, 6)  # a variance of about eps
    return [
        _ask("a single row", fixed, 4),
        _ask("one feature", fixed, 3, 1),
        _ask("other eps", fixed, 3, 5, eps=0.25),
        case("rows that hardly vary", hardly, normal64(fixed, 6), normal64(fixed, 2, 6)),
        case("rows that do not vary", 0.5 * torch.ones_like(hardly), normal64(fixed, 6), normal64(fixed, 2, 6)),
        _ask("single precision", fixed, 2, 3, 16, dtype=torch.float32),
        _ask("other shapes", random, 3, 7),
        _ask("other shapes", random, 2, 1, 3, 4),
        _ask("a single row", random, 9),
        _ask("other eps", random, 3, 5, eps=random.uniform(0.1, 0.5)),
        _ask("single precision", random, 2, 3, 16, dtype=torch.float32),
    ]


_FIXED = Random(5)

layernorm_backward = Exercise(
    "layernorm_backward",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_by_torch,
    cases=[
        case("a row of three", *(torch.tensor(row) for row in ([[1.0, 2.0, 6.0]], [1.0, 1.0, 1.0], [[1.0, 0.0, 0.0]]))),
        _ask("two rows with a gain", _FIXED, 2, 4),
        _ask("a batch of texts", _FIXED, 2, 3, 5),
        _ask("a large eps", _FIXED, 2, 4, eps=0.5),
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
def a_jacobian_for_each_row(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> dict[str, Tensor]:
    d = x.size(-1)
    s = torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
    normed = (x - x.mean(-1, keepdim=True)) / s
    local = torch.eye(d, dtype=x.dtype) - 1 / d - normed[..., :, None] * normed[..., None, :] / d
    dx = torch.einsum("...j,...ji->...i", dy * gain, local) / s
    sums = [part.unsqueeze(0).flatten(0, -2).sum(0) for part in (dy * normed, dy)]
    return {"x": dx, "gain": sums[0], "bias": sums[1]}


@layernorm_backward.variant
def in_double_precision(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> dict[str, Tensor]:
    rows, g, grad = (tensor.numpy().astype(np.float64) for tensor in (x, gain, dy))
    s = (rows.var(-1, keepdims=True) + eps) ** 0.5
    normed = (rows - rows.mean(-1, keepdims=True)) / s
    centred = grad * g - (grad * g).mean(-1, keepdims=True)
    front = tuple(range(rows.ndim - 1))
    grads = {
        "x": (centred - normed * (centred * normed).mean(-1, keepdims=True)) / s,
        "gain": (grad * normed).sum(front),
        "bias": grad.sum(front),
    }
    return {name: torch.tensor(value.astype(x.numpy().dtype)) for name, value in grads.items()}


def _wrong(
    x: Tensor,
    gain: Tensor,
    dy: Tensor,
    eps: float = 1e-5,
    *,
    mean: float = 1,
    scale: float = 1,
    with_gain: bool = True,
    correction: int = 0,
    eps_outside: bool = False,
) -> Grads:
    """The backward pass by the formula, with a mistake switched on."""
    variance = x.var(-1, correction=correction, keepdim=True)
    s = variance.sqrt() + eps if eps_outside else (variance + eps).sqrt()
    normed = (x - x.mean(-1, keepdim=True)) / s
    g = dy * gain if with_gain else dy
    dx = g - mean * g.mean(-1, keepdim=True) - scale * normed * (g * normed).mean(-1, keepdim=True)
    rows = tuple(range(x.ndim - 1))
    d_gain, d_bias = (dy * normed, dy) if not rows else ((dy * normed).sum(rows), dy.sum(rows))
    return {"x": dx / s, "gain": d_gain, "bias": d_bias}


@layernorm_backward.misconception(
    "You treat mean and spread as constants. Every feature changes both, and so changes every output of its row."
)
def constant_statistics(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, mean=0, scale=0)


@layernorm_backward.misconception(
    "You have the path through the mean. The path through the spread, − x̂ · mean(g · x̂), is missing."
)
def constant_spread(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, scale=0)


@layernorm_backward.misconception(
    "You have the path through the spread. The path through the mean, − mean(g), is missing. RMSNorm has no such path, "
    "but LayerNorm has one."
)
def constant_mean(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, mean=0)


@layernorm_backward.misconception(
    "This is the backward pass of RMSNorm, which subtracts no mean. In LayerNorm x̂ is (x − μ)/s, and there is a path "
    "through μ."
)
def of_rms_norm(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    s = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    normed, g = x / s, dy * gain
    front = tuple(range(x.ndim - 1))
    dx = (g - normed * (g * normed).mean(-1, keepdim=True)) / s
    d_gain, d_bias = ((dy * normed).sum(front), dy.sum(front)) if front else (dy * normed, dy)
    return {"x": dx, "gain": d_gain, "bias": d_bias}


@layernorm_backward.misconception("dx ignores the gain: what reaches x̂ is dy · gain.")
def without_gain(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, with_gain=False)


@layernorm_backward.misconception(
    "Your variance divides by d − 1, torch's default. LayerNorm divides by d: correction=0."
)
def unbiased_variance(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, correction=1)


@layernorm_backward.misconception("You add eps to the standard deviation. Add it to the variance, under the root.")
def eps_outside_the_root(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, eps_outside=True)


@layernorm_backward.misconception(
    "You return one gradient of gain and bias per row. All rows share them: sum over every axis but the last."
)
def one_per_row(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    normed = torch.nn.functional.layer_norm(x, gain.shape, eps=eps)
    return right | {"gain": dy * normed, "bias": dy}


@layernorm_backward.misconception(
    "You sum the gradients of gain and bias over the first axis only. A batch of texts has two axes in front of the "
    "features: sum over both."
)
def summed_over_the_first_axis(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    one: Grads = one_per_row(x, gain, dy, eps)
    return one | {name: one[name].sum(0) for name in ("gain", "bias")}


@layernorm_backward.misconception("Your gradient of the gain lacks the factor x̂. That is the gradient of the bias.")
def gain_like_bias(*args: Any, **eps: Any) -> Grads:
    right = _by_torch(*args, **eps)
    return right | {"gain": right["bias"]}


@layernorm_backward.misconception(
    "You average the gradients of gain and bias over the rows. Shared parameters add their gradients up."
)
def averaged_over_rows(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    rows = x.numel() // x.shape[-1]
    return right | {name: right[name] / rows for name in ("gain", "bias")}


@layernorm_backward.misconception("dx lacks the factor 1/s: each path from x to x̂ has it.")
def without_one_over_s(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    return right | {"x": right["x"] * (x.var(-1, correction=0, keepdim=True) + eps).sqrt()}


@layernorm_backward.misconception(
    "In dx the path through the spread has a plus. Where s grows, x̂ shrinks: subtract it."
)
def spread_added(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, scale=-1)


@layernorm_backward.misconception(
    "In dx you sum over the features where the mean belongs: ∂μ/∂x has a factor 1/d, and so has ∂s/∂x."
)
def sums_for_means(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    return _wrong(x, gain, dy, eps, mean=x.shape[-1], scale=x.shape[-1])


@layernorm_backward.misconception("The gradient of the gain has a factor x̂. You multiply by x itself.")
def gain_with_raw_x(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    return _by_torch(x, gain, dy, eps) | {"gain": (dy * x).reshape(-1, x.shape[-1]).sum(0)}


@layernorm_backward.misconception(
    "The gradient of the bias is dy, summed over the rows. Yours has the gain as a factor."
)
def bias_with_gain(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    return right | {"bias": right["bias"] * gain}


@layernorm_backward.misconception(
    "You take mean and spread over the whole tensor. Each row has its own: the last axis only."
)
def of_the_whole_tensor(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    s = (x.var(correction=0) + eps).sqrt()
    normed, g = (x - x.mean()) / s, dy * gain
    dx = (g - g.mean() - normed * (g * normed).mean()) / s
    return {"x": dx, "gain": (dy * normed).reshape(-1, len(gain)).sum(0), "bias": dy.reshape(-1, len(gain)).sum(0)}


@layernorm_backward.misconception(
    "You multiply by the gain at the end. It belongs to dy first: g = dy · gain, and the means are of g."
)
def gain_at_the_end(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _wrong(x, gain, dy, eps, with_gain=False)
    return right | {"x": right["x"] * gain}


@layernorm_backward.misconception("dx has a factor 1/s. You divide by s², the variance.")
def over_the_variance(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    return right | {"x": right["x"] / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()}


@layernorm_backward.misconception("You leave out eps. It is added to the variance, under the root.")
def without_eps(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    return _wrong(x, gain, dy, 0.0)
