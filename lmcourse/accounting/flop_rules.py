"""Rules of thumb for FLOPs, each written as in its source, for any model.

So the error of a rule on a model shows what the rule leaves out: 2ND attention's scores, the others key heads that are
shared, gates, or the causal half.
"""

from __future__ import annotations

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig


def two_n_d(parameters: int, tokens: int) -> int:
    """Forward FLOPs ≈ 2 · N · D: a product and a sum per weight and token (Kaplan et al., 2020, §2.1).

    Args:
        parameters: N. With `matmul_parameters`, the rule leaves out only attention's scores and values.
        tokens: D.
    """
    return 2 * parameters * tokens


def six_n_d(parameters: int, tokens: int) -> int:
    """Training FLOPs ≈ 6 · N · D: forward, and twice as much backward (Kaplan et al., 2020, §2.1)."""
    return 3 * two_n_d(parameters, tokens)


def kaplan_parameters(config: TransformerConfig) -> int:
    """N = Σ 2 · d_model · (2 · d_attn + d_ff) over the layers: without embeddings, head, biases and norms (Kaplan et
    al., 2020, equation 2.1). It ignores shared key heads and gates."""
    d_model = config.d_model
    return sum(2 * d_model * (2 * attention + wide) for attention, wide in _widths(config))


def kaplan_forward(config: TransformerConfig, seq_len: int) -> Breakdown[int]:
    """Forward FLOPs per token, row by row of Kaplan et al. (2020), Table 1.

    Their total, C = 2N + 2 · n_layer · n_ctx · d_attn, is that of the rows but "embed" and "de-embed".

    "embed" is 4 · d_model: an addition or so per feature, as it is a look-up (a product with one-hot vectors would take
    2 · n_vocab · d_model). "mask" holds scores and values: 4 · d_attn per visible pair, and a causal query sees half of
    the text on average, (n_ctx + 1)/2 tokens; without a mask it would be twice as much.
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
    """Per layer the width of all query heads together, and of the feed-forward."""
    return [
        (layer.attention.heads * layer.attention.head_width(config.d_model), layer.feed_forward.width)
        for layer in config.layers
    ]
