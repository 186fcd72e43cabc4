"""The feed-forward layer: the computation for each token separately, between two rounds of attention.

Two forms: W₂ f(W₁ x) (Vaswani et al., 2017), and gated, W₂ (f(W_g x) ⊙ W₁ x) (Shazeer, 2020: ReGLU, GEGLU, SwiGLU).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "relu2", "elu", "selu", "sigmoid", "identity"]


def squared_relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return max(0, x)² (So et al., 2021)."""
    return F.relu(x).square()


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "relu2": squared_relu,
    "elu": F.elu,
    "selu": F.selu,
    "sigmoid": F.sigmoid,
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class FeedForwardConfig:
    """Feed-forward settings: width, activation, gate, bias.

    Attributes:
        width: the width of the hidden layer, d_ff.
        activation: the non-linearity. A gated layer with "sigmoid" is the GLU, with "identity" the bilinear layer.
        gated: whether a second projection multiplies the first.
        bias: whether the linear layers have biases.
    """

    width: int
    activation: Activation = "silu"
    gated: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"the feed-forward width must be positive, not {self.width}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {self.activation!r}; choose from {', '.join(ACTIVATIONS)}")


class FeedForward(nn.Module):
    """Feed-forward layer without a gate: down(f(up(x)))."""

    def __init__(self, config: FeedForwardConfig, d_model: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, config.width, bias=config.bias)
        self.down = nn.Linear(config.width, d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the layer to each token's vector separately."""
        result: Tensor = self.down(self.activation(self.up(x)))
        return result


class GatedFeedForward(nn.Module):
    """Gated feed-forward layer (GLU variants): down(f(gate(x)) ⊙ up(x)), with gate and up in one matrix product."""

    def __init__(self, config: FeedForwardConfig, d_model: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(d_model, 2 * config.width, bias=config.bias)
        self.down = nn.Linear(config.width, d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the layer to each token's vector separately."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        result: Tensor = self.down(self.activation(gate) * up)
        return result


def build_feed_forward(config: FeedForwardConfig, d_model: int) -> FeedForward | GatedFeedForward:
    """Build the feed-forward layer that a configuration describes."""
    return GatedFeedForward(config, d_model) if config.gated else FeedForward(config, d_model)
