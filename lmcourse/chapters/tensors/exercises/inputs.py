"""Tensors for the cases in which a reader can follow every number."""

from __future__ import annotations

import torch
from torch import Tensor


def counting(*shape: int) -> Tensor:
    """A tensor of this shape with the integers from 0 on."""
    return torch.arange(torch.Size(shape).numel()).view(shape)
