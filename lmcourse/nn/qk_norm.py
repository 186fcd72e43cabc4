"""QK-norm: normalise queries and keys, which keeps attention scores from growing (Dehghani et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice
from lmcourse.nn.norm import Norm, NormConfig, TensorFunction, identity

NormOver = Literal["head", "heads", "width"]


@dataclass(frozen=True)
class QKNormConfig:
    """QK-norm settings: the norm, its axis (each head or all), before or after RoPE.

    Attributes:
        norm: the norm's settings.
        over: the vector to normalise. "head": each head's vector, with one scale for all heads (Qwen 3); "heads": the
            same with a separate scale for each head (Cohere); "width": all heads' features at once (OLMo 2).
        after_rotary: whether to normalise after the rotation by position instead of before (Llama 4).
    """

    norm: NormConfig = field(default_factory=NormConfig)
    over: NormOver = "head"
    after_rotary: bool = False

    def __post_init__(self) -> None:
        check_choice("QK-norm over", self.over, NormOver)


def build_head_norm(config: QKNormConfig | None, heads: int, d_head: int) -> TensorFunction:
    """Build the norm for queries or keys of shape b h s d; return `identity` if there is no configuration."""
    if config is None:
        return identity
    if config.over == "width":
        return WidthNorm(config.norm, heads, d_head)
    return Norm(config.norm, d_head) if config.over == "head" else Norm(config.norm, heads, 1, d_head)


class WidthNorm(nn.Module):
    """A norm over the features of all heads at once."""

    def __init__(self, config: NormConfig, heads: int, d_head: int) -> None:
        super().__init__()
        self.norm = Norm(config, heads * d_head)

    def forward(self, x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s d"]:
        """Return x, normalised over all features of each token."""
        merged: Tensor = self.norm(rearrange(x, "b h s d -> b s (h d)"))
        return rearrange(merged, "b s (h d) -> b h s d", h=x.shape[1])
