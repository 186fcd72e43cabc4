"""Compare formulas for activation memory with their sources' numbers, and with a block as they assume it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.accounting.activation_rules import (
    activation_bytes_by_layer_kind,
    break_even_batch,
    korthikanti,
    rule_errors,
)
from lmcourse.accounting.saved import saved_tensors
from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.models.zoo import find_model
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from tests.accounting.saved_by_autograd import saved_by_block

GPT3 = find_model("gpt-3").config
assert isinstance(GPT3, TransformerConfig)


def gpt(layers: int, d_model: int, heads: int, expansion: int = 4, dropout: float = 0.0) -> TransformerConfig:
    attention = AttentionConfig(heads, dropout=dropout)
    layer = LayerConfig(attention, FeedForwardConfig(expansion * d_model, "gelu", gated=False))
    block = BlockConfig(NormConfig("layer", bias=True), dropout=dropout)
    return TransformerConfig(50_257, d_model, repeat_layers([layer], layers), block)


class MaskedBlock(nn.Module):
    """A block as the formulas assume it: dropout masks are bool, and everything else has the parameters' format."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.d, self.heads = d, heads
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(d, d) for _ in range(3))
        self.out, self.up, self.down = nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def drop(self, x: Tensor) -> Tensor:
        return x * (torch.rand(x.shape) > 0.1) / 0.9

    def forward(self, x: Tensor) -> Tensor:
        (batch, seq_len, d), a = x.shape, self.heads
        y = self.norms[0](x)
        q, k, v = (layer(y).view(batch, seq_len, a, d // a).transpose(1, 2) for layer in self.qkv)
        # One sequence at a time, so that products use views of q, k and v instead of copies.
        scores = torch.stack([q[i] @ k[i].mT for i in range(batch)]) / math.sqrt(d // a)
        weights = self.drop(scores.softmax(dim=-1))
        mixed = torch.stack([(weights[i] @ v[i]).transpose(0, 1).reshape(seq_len, d) for i in range(batch)])
        x = x + self.drop(self.out(mixed))
        return x + self.drop(self.down(F.gelu(self.up(self.norms[1](x)))))


@pytest.mark.parametrize(("dtype", "width", "formula"), [(torch.float32, 4, 571_392), (torch.bfloat16, 2, 301_056)])
def test_formulas_are_exact_for_the_block_they_assume(dtype: torch.dtype, width: int, formula: int) -> None:
    B, S, D, A = 2, 48, 64, 4
    model = MaskedBlock(D, A).to(dtype)
    x = torch.randn(B, S, D, dtype=dtype, requires_grad=True)
    statistics = 2 * 2 * B * S * width
    assert activation_bytes_by_layer_kind(gpt(1, D, A), B, S, width=width).total == formula
    assert saved_tensors(lambda: model(x), model).total == formula + statistics


@pytest.mark.parametrize("expansion", [1, 4, 6])
@pytest.mark.parametrize("width", [2, 4])
def test_activation_parts_add_up_to_the_total(width: int, expansion: int) -> None:
    (B, S, D, A, L), p, E = (3, 20, 48, 6, 5), width, expansion
    config = gpt(L, D, A, E)
    parts = activation_bytes_by_layer_kind(config, B, S, width=p)
    assert parts["attention"] == B * L * S * ((5 * p + 1) * D + (2 * p + 1) * A * S)
    assert parts["feed-forward"] == (2 * E * p + p + 1) * B * L * S * D
    assert parts["norms"] == 2 * p * B * L * S * D


def test_korthikantis_table_is_matched() -> None:
    (s, b, h, a, L, t) = 2048, 1, 12_288, 96, 96, 8
    sbh, squares = L * s * b * h, 5 * a * s / h
    assert squares == 80
    rows = {
        (1, False): 34 + squares,
        (t, False): 10 + 24 / t + squares / t,
        (t, True): 34 / t + squares / t,
    }
    for (tensor, sequence), factor in rows.items():
        found = korthikanti(GPT3, b, s, tensor=tensor, sequence_parallel=sequence)
        assert found == pytest.approx(sbh * factor, rel=1e-15)


def test_break_even_batch_of_mixed_precision_is_exact() -> None:
    for D, A, S in ((64, 4, 48), (6144, 64, 2048)):
        assert break_even_batch(gpt(3, D, A), S) == pytest.approx(6 * D**2 / (8 * D * S + A * S**2), rel=1e-14)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_rule_errors_match_the_counted_bytes(dropout: float) -> None:
    config = gpt(2, 64, 4, dropout=dropout)
    exact = 2 * saved_by_block(config, 2, 48, torch.bfloat16, "readable").total
    sizes = [korthikanti(config, 2, 48), activation_bytes_by_layer_kind(config, 2, 48).total]
    assert list(rule_errors(config, 2, 48).values()) == [size / exact - 1 for size in sizes]
