"""What the course lends a learner's package while the notebook in which it is written is not there yet."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def rms_norm(x: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    """x divided by the root of the mean square of its last axis, times a scale (Zhang and Sennrich, 2019)."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (wide * (wide.square().mean(dim=-1, keepdim=True) + eps).rsqrt() * scale).to(x.dtype)


def block(x: Tensor, attention: Layer, feed_forward: Layer, norm_1: Layer, norm_2: Layer, parallel: bool) -> Tensor:
    """A pre-norm block: attention, then feed-forward; or, if parallel, both on what `norm_1` gives."""
    if parallel:
        read = norm_1(x)
        return x + attention(read) + feed_forward(read)
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))
