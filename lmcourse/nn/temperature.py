"""Attention temperature that depends on the position (Llama 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class TemperatureConfig:
    """Settings of Llama 4's attention temperature: q is multiplied by 1 + slope · ln(1 + ⌊(position + 1)/floor⌋)."""

    floor: int
    slope: float

    def __post_init__(self) -> None:
        if self.floor < 1:
            raise ValueError(f"attention is sharpened every `floor` tokens: at least 1, not {self.floor}")

    def factor(self, positions: Int[Tensor, "b s"]) -> Float[Tensor, "b 1 s 1"]:
        """Factor on the queries at these positions."""
        steps = torch.floor((positions.float() + 1) / self.floor)
        return (1 + self.slope * torch.log1p(steps))[:, None, :, None]
