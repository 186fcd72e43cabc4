"""Tensors for the cases in which a reader can follow every number."""

from __future__ import annotations

import torch
from torch import Tensor


def counting(*shape: int) -> Tensor:
    """A tensor of this shape with the integers from 0 on."""
    return torch.arange(torch.Size(shape).numel()).view(shape)


def turned(x: Tensor) -> Tensor:
    """The same numbers, with the first two axes swapped in memory."""
    return x.transpose(0, 1).contiguous().transpose(0, 1) if x.ndim > 1 else x
