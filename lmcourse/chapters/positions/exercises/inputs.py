"""Inputs that the exercises of this notebook share: random tensors, and the angles of pairs."""

from __future__ import annotations

import torch
from torch import Tensor


def angles(positions: Tensor, d: int, base: float = 10_000.0) -> Tensor:
    """The angle of every pair at every position, in float64: (*positions, d/2). ValueError if d is odd."""
    if d % 2:
        raise ValueError(f"features come in pairs: the width must be even, not {d}")
    return positions.double()[..., None] * base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
