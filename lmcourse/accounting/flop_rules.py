"""Rules of thumb for FLOPs, each as in its source, applied to any model.

So the error of a rule for a model shows what the rule leaves out. 6ND leaves out attention scores; the other rules
leave out shared key heads, gates, or the causal half.
"""

from __future__ import annotations

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig


def six_n_d(parameters: int, tokens: int) -> int:
    """Return training FLOPs ≈ 6 · N · D: a product and a sum per weight and token forward, and twice as much backward
    (Kaplan et al., 2020, §2.1). With `matmul_parameters`, the rule leaves out only attention's scores and values."""
    return 6 * parameters * tokens


def kaplan_parameters(config: TransformerConfig) -> int:
    """Return N = Σ 2 · d_model · (2 · d_attn + d_ff) over the layers (Kaplan et al., 2020, equation 2.1). It leaves out
    embeddings, head, biases and norms, and it ignores shared key heads and gates."""
    d_model = config.d_model
    return sum(2 * d_model * (2 * attention + wide) for attention, wide in _widths(config))


def kaplan_forward(config: TransformerConfig, seq_len: int) -> Breakdown[int]:
    """Return forward FLOPs per token for each row of Table 1 in Kaplan et al. (2020).

    Their total, C = 2N + 2 · n_layer · n_ctx · d_attn, is the sum of all rows except "embed" and "de-embed".

    "embed" is 4 · d_model, a few operations per feature, because it is a look-up (a product with one-hot vectors would
    take 2 · n_vocab · d_model). "mask" includes scores and values: 4 · d_attn per visible pair. On average a causal
    query sees half of the text, (n_ctx + 1)/2 tokens; without a mask the number would be about twice as large.
    """
    d_model, widths = config.d_model, _widths(config)
    all_heads = sum(attention for attention, _ in widths)
    rows = {
        "embed": 4 * d_model,
        "qkv": 2 * d_model * 3 * all_heads,
        "mask": 2 * seq_len * all_heads,
        "project": 2 * all_heads * d_model,
        "feed-forward": sum(2 * 2 * d_model * wide for _, wide in widths),
        "de-embed": 2 * d_model * config.vocab_size,
    }
    return Breakdown(rows)


def _widths(config: TransformerConfig) -> list[tuple[int, int]]:
    """Return, for each layer, the width of all query heads together and of the feed-forward layer."""
    return [
        (layer.attention.heads * layer.attention.head_width(config.d_model), layer.feed_forward.width)
        for layer in config.layers
    ]
