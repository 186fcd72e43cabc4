"""Bytes of the KV cache, from the configuration alone.

2 (key and value) · kv_heads · d_head · tokens · bytes per number, in every layer. A layer with a window or chunk of w
tokens keeps only the last w. The number of query heads does not matter: if g query heads share a key head (MQA:
Shazeer, 2019; GQA: Ainslie et al., 2023), the cache is g times smaller. The cache itself is in
`lmcourse.inference.cache`.
"""

from __future__ import annotations

from math import ceil

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices


def cache_bytes(config: TransformerConfig, batch: int, seq_len: int, *, precision: Format = "bf16") -> Breakdown[int]:
    """Return the bytes of the cache for a batch of texts, by attention pattern: "full", "window 4096" and so on.

    The cache holds exactly `seq_len` tokens, like `Cache(config, capacity=seq_len)`. Raises ValueError if a size is
    below 1, or a layer sees later tokens.

    Args:
        config: the model.
        batch: number of texts.
        seq_len: tokens per text, including the prompt.
        precision: the format of keys and values.
    """
    if batch < 1 or seq_len < 1:
        raise ValueError("batch and seq_len must be positive")
    sizes: dict[str, int] = {}
    for group in config.matrices.layers:
        pattern = group.layer.attention.pattern
        if not pattern.causal:
            raise ValueError("a model that sees later tokens has no KV cache")
        kind = "full" if pattern.span is None else f"{pattern.kind} {pattern.span}"
        tokens = batch * (seq_len if pattern.span is None else min(pattern.span, seq_len))
        sizes[kind] = sizes.get(kind, 0) + group.times * tokens * _layer_bytes(group, precision)
    return Breakdown(sizes)


def bytes_per_token(config: TransformerConfig, *, precision: Format = "bf16") -> int:
    """Return the bytes that each token adds to the cache before any window is full."""
    return sum(group.times * _layer_bytes(group, precision) for group in config.matrices.layers)


def batch_where_cache_exceeds_weights(config: TransformerConfig, seq_len: int, *, precision: Format = "bf16") -> int:
    """Return the smallest batch whose cache takes more bytes than the weights, both in the same format.

    With 12 · d² parameters per layer and one key head per query head, this happens at 6 · d tokens in all texts
    together.
    """
    weights = ceil(BYTES_PER_NUMBER[precision] * count_parameters(config).total)
    return weights // cache_bytes(config, 1, seq_len, precision=precision).total + 1


def _layer_bytes(group: LayerMatrices, precision: Format) -> int:
    """Return the bytes of a token's key and value in one layer."""
    _, k, v, _ = group.attention
    return int((k.outputs + v.outputs) * BYTES_PER_NUMBER[precision])
