"""Published formulas for activation memory, and the error of each against the exact count.

The formulas are for one block with LayerNorm, as many key heads as query heads, a feed-forward layer of width E·d
without a gate, dropout on attention weights and after both branches, and no fused kernels. Numbers take p bytes; an
element of a dropout mask takes one.
"""

from __future__ import annotations

import torch

from lmcourse.accounting.activations import predict_block_bytes
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig

BYTES_FP32, BYTES_MIXED = 16, 18
"""Bytes per parameter in training with Adam: weight, gradient and moments take 4 + 4 + 8 in fp32; mixed precision adds
2 for a 16-bit weight and keeps gradients in fp32."""


def korthikanti(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """Return the bytes of all blocks on each device, in 16-bit numbers: L · s·b·h · (10 + 24/t + 5·a·s/(h·t)).

    Without parallelism this is s·b·h · (34 + 5·a·s/h) per layer, the most frequently quoted form (Korthikanti et al.,
    2022, equation 1 and table 2).

    Args:
        config: the model. The formula assumes a feed-forward width of 4 d, even if the configuration has another width.
        batch, seq_len: sizes of the token tensor.
        tensor: t, the number of devices that share each layer (tensor parallelism).
        sequence_parallel: whether these devices also share the tokens of norms and dropout: the 10 becomes 10/t.
    """
    outside = 10 / tensor if sequence_parallel else 10
    per_token = (
        (outside + 24 / tensor) * config.d_model + 5 * layer.attention.heads * seq_len / tensor
        for layer in config.layers
    )
    return batch * seq_len * sum(per_token)


def activation_bytes_by_layer_kind(
    config: TransformerConfig, batch: int, seq_len: int, *, width: int = 2
) -> Breakdown[float]:
    """Return activation bytes by kind of layer; the sum is 2·B·L·S·D·(p(E + 4) + 1) + A·B·L·S²·(2p + 1).

    - "attention" B·L·S·((5p + 1)·D + (2p + 1)·A·S): its input, q, k, v and the input of the last product; a dropout
      mask of its output; scores, weights after dropout, and a dropout mask of the weights.
    - "feed-forward" B·L·S·D·(2E·p + p + 1): its input, the non-linearity's input and output, and a dropout mask.
    - "norms" 2p·B·L·S·D: their inputs. Residual sums keep nothing.

    At p = 2 and E = 4 the sum is B·L·S·(34·D + 5·A·S), Korthikanti's formula; at p = 4 it is B·L·S·(66·D + 9·A·S).

    Args:
        config: the model, with its numbers of heads and feed-forward widths.
        batch, seq_len: sizes of the token tensor.
        width: p, bytes per number.
    """
    tokens, p, d = batch * seq_len, width, config.d_model
    attention = feed_forward = 0.0
    for layer in config.layers:
        attention += tokens * ((5 * p + 1) * d + (2 * p + 1) * layer.attention.heads * seq_len)
        feed_forward += tokens * ((p + 1) * d + 2 * p * layer.feed_forward.width)
    norms = 2.0 * p * tokens * d * len(config.layers)
    return Breakdown({"attention": attention, "feed-forward": feed_forward, "norms": norms})


def break_even_batch(config: TransformerConfig, seq_len: int) -> float:
    """Return the batch size above which mixed precision takes less memory than fp32: 6·D²/(8·D·S + A·S²) at E = 4.

    Mixed precision adds 2 bytes for each of the 12·D² parameters of a block and reduces p from 4 to 2.
    """
    parameters = sum(4 * config.d_model**2 + 2 * config.d_model * layer.feed_forward.width for layer in config.layers)
    fp32, mixed = (activation_bytes_by_layer_kind(config, 1, seq_len, width=width).total for width in (4, 2))
    return (BYTES_MIXED - BYTES_FP32) * parameters / (fp32 - mixed)


def rule_errors(config: TransformerConfig, batch: int, seq_len: int) -> dict[str, float]:
    """Return (rule − exact)/exact for blocks in bf16 with readable attention. Negative means that the rule is too low.

    The exact number is what PyTorch's CPU kernels keep; their dropout masks use the same format as the numbers.
    """
    exact = sum(
        predict_block_bytes(config, batch, seq_len, layer=layer, dtype=torch.bfloat16, attention="readable").total
        for layer in range(len(config.layers))
    )
    rules = {
        "Korthikanti et al., 34 + 5as/h": korthikanti(config, batch, seq_len),
        "by kind of layer": activation_bytes_by_layer_kind(config, batch, seq_len).total,
    }
    return {name: size / exact - 1 for name, size in rules.items()}
