"""Helper constructors: GPT-style and LLaMA-style configurations from the few numbers that papers print.

Two habits cover most models: GPT-2's (LayerNorm, biases, GELU, learned positions) and LLaMA's (RMSNorm, no biases,
SwiGLU, RoPE). Arguments change the details in which a model differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lmcourse.models.config import TransformerConfig, repeat_layers
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.rotary import RotaryConfig

LAYER_NORM = NormConfig("layer", bias=True)
LAYER_NORM_NO_BIAS = NormConfig("layer")
RMS = NormConfig("rms")
RMS_1E6 = NormConfig("rms", eps=1e-6)


def gpt_like(
    layers: int,
    d_model: int,
    heads: int,
    *,
    vocab_size: int,
    context: int,
    norm: NormConfig = LAYER_NORM,
    embedding: EmbeddingConfig | None = None,
    head: HeadConfig | None = None,
    block: dict[str, Any] | None = None,
    feed_forward: dict[str, Any] | None = None,
    dropout: float = 0.0,
    **attention: Any,
) -> TransformerConfig:
    """Make a GPT-2-style decoder: learned positions, biases everywhere, GELU, a feed-forward width of 4 d.

    Args:
        layers, d_model, heads, vocab_size, context: the sizes.
        norm: the norm of the blocks and after the last block.
        embedding, head: their configurations, if they are not learned positions and a tied head.
        block, feed_forward, attention: fields of their configurations that differ.
        dropout: the probability of dropout, the same in all places.

    Example:
        >>> config = gpt_like(layers=2, d_model=64, heads=4, vocab_size=256, context=128)
        >>> config.layers[0].feed_forward.width
        256
    """
    all_heads = AttentionConfig(heads, bias=True, out_bias=True, dropout=dropout)
    wide = FeedForwardConfig(4 * d_model, "gelu_tanh", gated=False, bias=True)
    layer = LayerConfig(replace(all_heads, **attention), replace(wide, **(feed_forward or {})))
    blocks = replace(BlockConfig(norm, dropout=dropout), **(block or {}))
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        layers=repeat_layers([layer], layers),
        block=blocks,
        embedding=embedding or EmbeddingConfig("learned", max_positions=context, dropout=dropout),
        head=head or HeadConfig(),
        final_norm=None if blocks.placement == "post" else norm,
        context=context,
    )


def llama_like(
    layers: int,
    d_model: int,
    heads: int,
    d_ff: int,
    *,
    vocab_size: int,
    context: int,
    norm: NormConfig = RMS,
    theta: float = 10_000.0,
    tied: bool = False,
    rotary: dict[str, Any] | None = None,
    block: dict[str, Any] | None = None,
    feed_forward: dict[str, Any] | None = None,
    embedding: EmbeddingConfig | None = None,
    head: HeadConfig | None = None,
    layer_pattern: Sequence[dict[str, Any]] = ({},),
    **attention: Any,
) -> TransformerConfig:
    """Make a LLaMA-style decoder: RMSNorm before each branch, RoPE, SwiGLU, no biases.

    Args:
        layers, d_model, heads, d_ff, vocab_size, context: the sizes.
        norm: the norm of the blocks and after the last block.
        theta, rotary: RoPE's base, and other fields of its configuration.
        tied: whether the head shares the embedding's matrix.
        block, feed_forward, attention: fields of their configurations that differ.
        embedding, head: their whole configurations, if they differ.
        layer_pattern: for each layer of a repeating group, the fields of its attention that differ.

    Example:
        >>> config = llama_like(2, 64, 4, 192, vocab_size=256, context=128, kv_heads=2)
        >>> config.layers[0].attention.kv_heads
        2
    """
    rope = RotaryConfig(theta, **(rotary or {}))
    common = replace(AttentionConfig(heads, rotary=rope), **attention)
    wide = replace(FeedForwardConfig(d_ff), **(feed_forward or {}))
    blocks = replace(BlockConfig(norm), **(block or {}))
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        layers=repeat_layers([LayerConfig(replace(common, **changes), wide) for changes in layer_pattern], layers),
        block=blocks,
        embedding=embedding or EmbeddingConfig(),
        head=head or HeadConfig(tied=tied),
        final_norm=norm,
        context=context,
    )


def window(size: int, every: int, **others: Any) -> list[dict[str, Any]]:
    """Return a `layer_pattern`: `every` − 1 layers with a window, then a full layer with the fields `others`."""
    return [{"pattern": AttentionPattern("window", size)}] * (every - 1) + [others]
