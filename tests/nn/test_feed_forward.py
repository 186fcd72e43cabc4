"""Compare feed-forward layers with their formulas, and with one token at a time."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from torch import Tensor

from lmcourse.nn.feed_forward import (
    ACTIVATIONS,
    Activation,
    FeedForward,
    FeedForwardConfig,
    GatedFeedForward,
    build_feed_forward,
)

FORMULAS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu2": lambda x: max(0.0, x) ** 2,
    "elu": lambda x: x if x > 0 else math.expm1(x),
    # SELU's two constants keep mean 0 and variance 1 (Klambauer et al., 2017, equation 14).
    "selu": lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "identity": lambda x: x,
}


def apply(activation: str, x: Tensor) -> Tensor:
    return torch.tensor([FORMULAS[activation](value) for value in x.flatten().tolist()]).view_as(x)


@pytest.mark.parametrize("activation", get_args(Activation))
def test_activations_match_their_formulas(activation: Activation) -> None:
    x = torch.linspace(-6, 6, 121)
    torch.testing.assert_close(ACTIVATIONS[activation](x), apply(activation, x), atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize(("activation", "bias"), [("gelu", True), ("relu2", False)])
def test_the_plain_layer_matches_the_formula(activation: Activation, bias: bool) -> None:
    layer = build_feed_forward(FeedForwardConfig(11, activation, gated=False, bias=bias), 5)
    assert isinstance(layer, FeedForward)
    x = torch.randn(2, 3, 5)
    hidden = apply(activation, x @ layer.up.weight.T + (layer.up.bias if bias else 0))
    torch.testing.assert_close(layer(x), hidden @ layer.down.weight.T + (layer.down.bias if bias else 0))
    assert sum(p.numel() for p in layer.parameters()) == 2 * 5 * 11 + (16 if bias else 0)


@pytest.mark.parametrize(("activation", "bias"), [("silu", False), ("sigmoid", True)])
def test_the_gated_layer_matches_the_formula(activation: Activation, bias: bool) -> None:
    """The activation applies to the gate, the first half of the fused matrix; the other half is linear."""
    layer = build_feed_forward(FeedForwardConfig(11, activation, gated=True, bias=bias), 5)
    assert isinstance(layer, GatedFeedForward)
    x = torch.randn(2, 3, 5)
    both = x @ layer.gate_up.weight.T + (layer.gate_up.bias if bias else 0)
    hidden = apply(activation, both[..., :11]) * both[..., 11:]
    torch.testing.assert_close(layer(x), hidden @ layer.down.weight.T + (layer.down.bias if bias else 0))
    assert sum(p.numel() for p in layer.parameters()) == 3 * 5 * 11 + (27 if bias else 0)
