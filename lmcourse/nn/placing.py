"""Queries and keys before they meet: normalised, turned by their position, sharpened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice
from lmcourse.nn.norm import Norm, NormConfig
from lmcourse.nn.rotary import Rotary, RotaryConfig
from lmcourse.nn.step import Pass
from lmcourse.nn.unchanged import Part, unchanged

NormOver = Literal["head", "heads", "width"]


@dataclass(frozen=True)
class QKNormConfig:
    """A norm on queries and keys, which keeps the scores from growing (Dehghani et al., 2023).

    Attributes:
        norm: which norm.
        over: what it normalises and how many scales it has: "head" each head's vector, one scale for all heads (Qwen
            3); "heads" the same with a scale for each head (Cohere); "width" all heads' features at once (OLMo 2).
        after_rotary: normalise after turning by position instead of before (Llama 4).
    """

    norm: NormConfig = field(default_factory=NormConfig)
    over: NormOver = "head"
    after_rotary: bool = False

    def __post_init__(self) -> None:
        check_choice("QK-norm over", self.over, NormOver)


@dataclass(frozen=True)
class TemperatureConfig:
    """Sharper attention at far positions: q is multiplied by 1 + slope · ln(1 + ⌊(position + 1)/floor⌋) (Llama 4)."""

    floor: int
    slope: float

    def __post_init__(self) -> None:
        if self.floor < 1:
            raise ValueError(f"attention is sharpened every `floor` tokens: at least 1, not {self.floor}")


class Placing(nn.Module):
    """Everything that happens to queries and keys before they meet: norms, rotation, temperature.

    Args:
        heads: how many heads of queries there are, and how many of keys.
        d_head: a head's width.
        qk_norm, rotary, temperature: what happens; None leaves it out.

    Attributes:
        copies: whether neither queries nor keys nor the backward pass need what came in any more.
    """

    def __init__(
        self,
        heads: tuple[int, int],
        d_head: int,
        qk_norm: QKNormConfig | None,
        rotary: RotaryConfig | None,
        temperature: TemperatureConfig | None,
    ) -> None:
        super().__init__()
        self.heads = list(heads)
        self.rotary = Rotary(rotary, d_head) if rotary else None
        self.temperature = temperature
        self.early = qk_norm is not None and not qk_norm.after_rotary
        self.late = qk_norm is not None and qk_norm.after_rotary
        self.copies = rotary is not None and not self.early
        self.norm_q, self.norm_k = (head_norm(qk_norm, count, d_head) for count in heads)

    def forward(self, qk: Float[Tensor, "b h s d"], step: Pass) -> tuple[Tensor, Tensor]:
        """Queries and keys, ready to meet. They come together because a rotation does not tell them apart."""
        if self.early:
            q, k = torch.split(qk, self.heads, dim=1)
            qk = torch.cat([self.norm_q(q), self.norm_k(k)], dim=1)
        if self.rotary is not None:
            qk = self.rotary.turn(qk, step.turns(self.rotary))
        q, k = torch.split(qk, self.heads, dim=1)
        if self.late:
            q, k = self.norm_q(q), self.norm_k(k)
        if self.temperature is not None:
            q = (q * _sharpening(self.temperature, step.positions)).to(q.dtype)
        return q, k


def _sharpening(config: TemperatureConfig, positions: Int[Tensor, "b s"]) -> Float[Tensor, "b 1 s 1"]:
    steps = torch.floor((positions.float() + 1) / config.floor)
    return (1 + config.slope * torch.log1p(steps))[:, None, :, None]


def head_norm(config: QKNormConfig | None, heads: int, d_head: int) -> Part:
    """The norm on the queries, or on the keys."""
    if config is None:
        return unchanged
    if config.over == "width":
        return WidthNorm(config.norm, heads, d_head)
    return Norm(config.norm, d_head) if config.over == "head" else Norm(config.norm, heads, 1, d_head)


class WidthNorm(nn.Module):
    """A norm over the features of all heads at once."""

    def __init__(self, config: NormConfig, heads: int, d_head: int) -> None:
        super().__init__()
        self.norm = Norm(config, heads * d_head)

    def forward(self, x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s d"]:
        merged: Tensor = self.norm(rearrange(x, "b h s d -> b s (h d)"))
        return rearrange(merged, "b s (h d) -> b h s d", h=x.shape[1])
