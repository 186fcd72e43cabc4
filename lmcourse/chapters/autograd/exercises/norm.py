"""The exercise on the backward pass of LayerNorm."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal64

Grads = dict[str, Tensor]


def _by_torch(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    x, gain, bias = tracked(x, gain, torch.zeros_like(gain))
    y = torch.nn.functional.layer_norm(x, gain.shape, gain, bias, eps)
    return dict(zip(("x", "gain", "bias"), grads_of((y * dy).sum(), x, gain, bias), strict=True))


def _ask(name: str, random: Random, *shape: int, dtype: torch.dtype = torch.float64, **eps: float) -> Case:
    x, gain, dy = (
        normal64(random, *shape) + 0.5,
        normal64(random, shape[-1]) + 1.0,
        normal64(random, *shape),
    )
    return case(name, x.to(dtype), gain.to(dtype), dy.to(dtype), **eps)


def _inputs(random: Random) -> list[Case]:
    d = random.randint(4, 9)
    return [
        _ask("other shapes", random, 3, d),
        _ask("other shapes", random, 2, 3, d),
        _ask("a single row", random, d),
        _ask("other eps", random, 3, d, eps=random.uniform(0.1, 0.5)),
        _ask("single precision", random, 2, 3, 16, dtype=torch.float32),
        case(
            "rows that hardly vary",
            5.0 + 1e-3 * normal64(random, 2, d),
            normal64(random, d),
            normal64(random, 2, d),
        ),
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
    forbid=[".layer_norm", ".native_layer_norm", *NO_AUTOGRAD],
)


def _wrong(
    x: Tensor,
    gain: Tensor,
    dy: Tensor,
    eps: float = 1e-5,
    *,
    mean: bool = True,
    scale: bool = True,
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
    "You treat mean and spread as constants. Every feature moves both, and so reaches every output of its row."
)
def constant_statistics(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, mean=False, scale=False)


@layernorm_backward.misconception(
    "The path through the mean is there; the one through the spread, − x̂ · mean(g · x̂), is missing."
)
def constant_spread(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, scale=False)


@layernorm_backward.misconception(
    "The path through the spread is there; the one through the mean, − mean(g), is missing. That would be right for "
    "RMSNorm."
)
def constant_mean(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, mean=False)


@layernorm_backward.misconception("dx ignores the gain: what reaches x̂ is dy · gain.")
def without_gain(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, with_gain=False)


@layernorm_backward.misconception(
    "Your variance divides by d − 1, torch's default. LayerNorm divides by d: correction=0."
)
def unbiased_variance(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, correction=1)


@layernorm_backward.misconception("Your eps is added to the standard deviation. It belongs under the root.")
def eps_outside_the_root(*args: Any, **eps: Any) -> Grads:
    return _wrong(*args, **eps, eps_outside=True)


@layernorm_backward.misconception(
    "gain and bias got one gradient per row. They are shared by all rows: sum over every axis but the last."
)
def one_per_row(x: Tensor, gain: Tensor, dy: Tensor, eps: float = 1e-5) -> Grads:
    right = _by_torch(x, gain, dy, eps)
    normed = torch.nn.functional.layer_norm(x, gain.shape, eps=eps)
    return right | {"gain": dy * normed, "bias": dy}


@layernorm_backward.misconception(
    "The gain's gradient lacks x̂, which the gain was multiplied by. Yours is that of the bias."
)
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
