"""Attention temperature that depends on the position (Llama 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class AttentionTemperatureConfig:
    """Settings of Llama 4's attention temperature: sharper attention at far positions.

    Queries are multiplied by 1 + slope · ln(1 + ⌊(position + 1) / floor_scale⌋).
    """

    floor_scale: int
    slope: float

    def __post_init__(self) -> None:
        if self.floor_scale < 1:
            raise ValueError(f"attention is sharpened every `floor_scale` tokens: at least 1, not {self.floor_scale}")

    def factor(self, positions: Int[Tensor, "b s"]) -> Float[Tensor, "b 1 s 1"]:
        """Factor on the queries at these positions."""
        steps = torch.floor((positions.float() + 1) / self.floor_scale)
        return (1 + self.slope * torch.log1p(steps))[:, None, :, None]
