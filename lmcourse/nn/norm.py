"""Normalisation layers, RMSNorm and LayerNorm: bring every token's vector to a standard size.

LayerNorm subtracts the mean and divides by the standard deviation (Ba et al., 2016); RMSNorm divides by the root mean
square alone (Zhang and Sennrich, 2019). Everything else that models vary (a scale, a bias, a scale stored as 1 + w) is
a choice of parameters that is made when the norm is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice

TensorFunction = Callable[[Tensor], Tensor]
"""A module with one input, or `identity`."""


def identity(x: Tensor) -> Tensor:
    """Return x. A function is cheaper than `nn.Identity`, which a decoding step would call fifty times."""
    return x


NormKind = Literal["layer", "rms"]


@dataclass(frozen=True)
class NormConfig:
    """Norm settings: RMSNorm or LayerNorm, eps, scale, bias.

    Attributes:
        kind: "layer" subtracts the mean, "rms" does not.
        eps: added to the variance, inside the root.
        scale: whether each feature has a learned factor.
        bias: whether each feature has a learned offset.
        unit_offset: the learned factor is stored as w with y = (1 + w) x̂, so that weight decay pulls it to 1 (Gemma).
    """

    kind: NormKind = "rms"
    eps: float = 1e-5
    scale: bool = True
    bias: bool = False
    unit_offset: bool = False

    def __post_init__(self) -> None:
        check_choice("norm", self.kind, NormKind)
        if self.eps <= 0:
            raise ValueError(f"the norm's eps must be positive, not {self.eps}")
        if self.unit_offset and not self.scale:
            raise ValueError("unit_offset is for norms with a scale: set scale=True, or leave it out")


class Norm(nn.Module):
    """RMSNorm or LayerNorm over the last axis of its input.

    Args:
        config: the settings of the norm.
        shape: the shape of the parameters. Usually (d,); (heads, d) gives every head a separate scale.
    """

    def __init__(self, config: NormConfig, *shape: int) -> None:
        super().__init__()
        self.eps = config.eps
        self.centered = config.kind == "layer"
        self.flat = len(shape) == 1
        self.offset = 1.0 if config.unit_offset else 0.0
        self.weight = nn.Parameter(torch.full(shape, 1.0 - self.offset)) if config.scale else None
        self.bias = nn.Parameter(torch.zeros(shape)) if config.bias else None

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Return x with its last axis normalised; computed in at least fp32, returned in the dtype of x."""
        scale, bias = self.weight, self.bias
        if any(part is not None and part.dtype != torch.float32 for part in (x, scale, bias)):
            return self._in_full(x, scale, bias)
        return self._scaled(x, scale, bias)

    def _in_full(self, x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        """Cast to at least fp32, because in bf16 squares are imprecise and a sum of squares soon stops growing."""
        wide = torch.promote_types(x.dtype, torch.float32)
        scale = None if scale is None else scale.to(wide)
        bias = None if bias is None else bias.to(wide)
        return self._scaled(x.to(wide), scale, bias).to(x.dtype)

    def _scaled(self, x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        scale = scale + self.offset if scale is not None and self.offset else scale
        if self.flat:
            return self._normalize(x, scale, bias)
        y = self._normalize(x, None, None)  # parameters per head, which no kernel supports
        y = y if scale is None else y * scale
        return y if bias is None else y + bias

    def _normalize(self, x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
        """Compute (x − mean) / √(variance + ε) or x / √(mean of squares + ε), then scale and bias, in one kernel."""
        if self.centered:
            return F.layer_norm(x, x.shape[-1:], scale, bias, self.eps)
        y = F.rms_norm(x, x.shape[-1:], scale, self.eps)
        return y if bias is None else y + bias

    def extra_repr(self) -> str:
        """Return the settings that `print` shows."""
        return f"{'layer' if self.centered else 'rms'}, eps={self.eps:g}"
