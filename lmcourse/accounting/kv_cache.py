"""Bytes of the KV cache, from the configuration alone.

2 (key and value) · kv_heads · d_head · tokens · bytes per number, in every layer. A layer with a window or chunk of w
tokens keeps the last w only. Query heads do not appear: sharing key heads (MQA: Shazeer, 2019; GQA: Ainslie et al.,
2023) is worth as much as it shares. `lmcourse.inference.cache` is the cache itself.
"""

from __future__ import annotations

from collections import Counter
from math import ceil

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, Format
from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import LayerConfig


def cache_bytes(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    *,
    precision: Format = "bf16",
    source: int | None = None,
) -> Breakdown[int]:
    """Bytes of the cache of a batch of texts, by what layers can see: "full", "window 4096" and so on.

    It has room for exactly `seq_len` tokens, as `Cache(config, capacity=seq_len)`.

    Args:
        config: the model.
        batch: texts.
        seq_len: tokens of each, prompt included.
        precision: how keys and values are stored.
        source: tokens of each source text, whose keys and values are kept as "cross-attention": for an
            encoder–decoder, and only there.

    Raises:
        ValueError: a size below 1, a layer that sees later tokens, or a source that is missing or has no use.
    """
    decoder = config.decoder if isinstance(config, EncoderDecoderConfig) else config
    _check(config, decoder, batch, seq_len, source)
    sizes: dict[str, int] = {}
    for layer, times in Counter(decoder.layers).items():
        kind, texts = _kind(layer.attention.pattern), batch * times
        tokens = kept_tokens(layer.attention.pattern, seq_len)
        sizes[kind] = sizes.get(kind, 0) + texts * tokens * _layer_bytes(layer, decoder.d_model, precision)
        if source is not None:
            across = texts * source * _layer_bytes(layer, decoder.d_model, precision)
            sizes["cross-attention"] = sizes.get("cross-attention", 0) + across
    return Breakdown(sizes)


def kept_tokens(pattern: AttentionPattern, seq_len: int) -> int:
    """How many of a text's tokens a layer keeps."""
    return seq_len if pattern.span is None else min(pattern.span, seq_len)


def bytes_per_token(config: TransformerConfig, *, precision: Format = "bf16") -> int:
    """Bytes that a token adds, as long as no window is full."""
    return sum(_layer_bytes(layer, config.d_model, precision) for layer in config.layers)


def batch_where_cache_exceeds_weights(config: TransformerConfig, seq_len: int, *, precision: Format = "bf16") -> int:
    """The smallest batch whose cache takes more bytes than the weights, both in the same format.

    With 12 · d² parameters per layer and a key head per query head it needs 6 · d tokens in all texts together.
    """
    weights = ceil(BYTES_PER_NUMBER[precision] * count_parameters(config).total)
    return weights // cache_bytes(config, 1, seq_len, precision=precision).total + 1


def _layer_bytes(layer: LayerConfig, d_model: int, precision: Format) -> int:
    """A token's key and value in one layer."""
    attention = layer.attention
    return int(2 * attention.key_heads * attention.head_width(d_model) * BYTES_PER_NUMBER[precision])


def _kind(pattern: AttentionPattern) -> str:
    return "full" if pattern.span is None else f"{pattern.kind} {pattern.span}"


def _check(
    config: TransformerConfig | EncoderDecoderConfig,
    decoder: TransformerConfig,
    batch: int,
    seq_len: int,
    source: int | None,
) -> None:
    if batch < 1 or seq_len < 1 or (source is not None and source < 1):
        raise ValueError("batch, seq_len and source must be positive")
    if isinstance(config, EncoderDecoderConfig) != (source is not None):
        raise ValueError("`source` is the length of an encoder–decoder's source: give it with one, and only with one")
    if not all(layer.attention.pattern.causal for layer in decoder.layers):
        raise ValueError("a model that sees later tokens has no KV cache")
