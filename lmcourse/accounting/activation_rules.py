"""Published formulas for activation memory, and the error of each against the exact count.

They are for one block: LayerNorm, as many key heads as query heads, a plain feed-forward of width E·d, dropout after
attention's weights and after both branches, nothing fused. Numbers take p bytes, dropout's masks one.
"""

from __future__ import annotations

import torch

from lmcourse.accounting.activations import predict_block_bytes
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig

BYTES_FP32, BYTES_MIXED = 16, 18
"""Bytes per parameter in training with Adam: 4 + 4 + 8 in fp32; 2 and an fp32 copy, 4 + 4 + 8, in mixed precision,
where gradients are kept in fp32."""


def korthikanti(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """Bytes on each device for all blocks, in 16-bit numbers: L · s·b·h · (10 + 24/t + 5·a·s/(h·t)).

    Without parallelism that is s·b·h · (34 + 5·a·s/h) a layer, the form quoted most often (Korthikanti et al., 2022,
    equation 1 and table 2).

    Args:
        config: the model. The formula's feed-forward is 4 d wide, whatever the configuration says.
        batch, seq_len: sizes of the token tensor.
        tensor: t, how many devices share each layer (tensor parallelism).
        sequence_parallel: they share the tokens of norms and dropout too: the 10 becomes 10/t.
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
    """Activation bytes by kind of layer, at p bytes per number: together 2·B·L·S·D·(p(E + 4) + 1) + A·B·L·S²·(2p + 1).

    - "attention" B·L·S·((5p + 1)·D + (2p + 1)·A·S): its input, q, k, v and the last product's input; a mask of its
      output; scores, weights after dropout, and a mask of those.
    - "feed-forward" B·L·S·D·(2E·p + p + 1): its input, the non-linearity's input and output; a mask.
    - "norms" 2p·B·L·S·D: their inputs. Sums keep nothing.

    At p = 2 and E = 4 it is B·L·S·(34·D + 5·A·S), Korthikanti's formula; at p = 4, B·L·S·(66·D + 9·A·S).

    Args:
        config: the model, whose heads and feed-forward widths are taken.
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

    It adds 2 bytes to each of the 12·D² parameters of a block and takes p from 4 to 2.
    """
    parameters = sum(4 * config.d_model**2 + 2 * config.d_model * layer.feed_forward.width for layer in config.layers)
    fp32, mixed = (activation_bytes_by_layer_kind(config, 1, seq_len, width=width).total for width in (4, 2))
    return (BYTES_MIXED - BYTES_FP32) * parameters / (fp32 - mixed)


def rule_errors(config: TransformerConfig, batch: int, seq_len: int) -> dict[str, float]:
    """Return (rule − exact)/exact for blocks in bf16 with readable attention; a negative error means too few bytes.

    Exact is what PyTorch's CPU kernels keep, where masks of dropout are as wide as the numbers.
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
