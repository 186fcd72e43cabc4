"""Tiny models of all kinds that a cache must support."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import BlockConfig, LayerConfig
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import AlibiConfig, RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

VOCABULARY = 13
WIDTH = 24
HEADS = 6
FULL, WINDOW, CHUNK = AttentionPattern(), AttentionPattern("window", 5), AttentionPattern("chunk", 4)
NORM = NormConfig()
ROPE = RotaryConfig(theta=100.0)


def attention(**changes: Any) -> AttentionConfig:
    return replace(AttentionConfig(HEADS, rotary=ROPE), **changes)


def tiny(*attentions: AttentionConfig, block: dict[str, Any] | None = None, **changes: Any) -> TransformerConfig:
    """Return a configuration with one layer per attention; a single one is repeated."""
    attentions = attentions * 2 if len(attentions) == 1 else attentions
    layers = tuple(LayerConfig(each, FeedForwardConfig(32)) for each in attentions)
    # Not tied: a tiny model with a tied head repeats its last token forever, so wrong generations would look right.
    head = HeadConfig(tied=False)
    base = TransformerConfig(VOCABULARY, WIDTH, layers, BlockConfig(NORM, **(block or {})), head=head, final_norm=NORM)
    return replace(base, **changes)


NOPE = attention(rotary=None)
LEARNED = EmbeddingConfig(positions="learned", max_positions=64)

CONFIGS: dict[str, TransformerConfig] = {
    "mha": tiny(attention()),
    "gqa": tiny(attention(kv_heads=2)),
    "mqa": tiny(attention(kv_heads=1)),
    "wide heads": tiny(attention(d_head=10, kv_heads=3)),
    "window": tiny(attention(pattern=WINDOW)),
    "window of one": tiny(attention(pattern=AttentionPattern("window", 1)), attention()),
    "chunk": tiny(attention(pattern=CHUNK)),
    "strided": tiny(attention(pattern=AttentionPattern("strided", 3))),
    "fixed": tiny(attention(pattern=AttentionPattern("fixed", 3))),
    "3:1 with nope": tiny(*[attention(pattern=CHUNK, kv_heads=2)] * 3, replace(NOPE, kv_heads=2)),
    "two windows": tiny(attention(pattern=WINDOW), attention(), attention(pattern=AttentionPattern("window", 3))),
    "thetas": tiny(attention(pattern=WINDOW, rotary=RotaryConfig(theta=10.0)), attention()),
    "partial rope": tiny(attention(rotary=RotaryConfig(fraction=0.5, layout="interleaved"))),
    "alibi": tiny(NOPE, position_bias=AlibiConfig()),
    "alibi rounded": tiny(NOPE, position_bias=AlibiConfig(falcon_bf16=True)),
    "alibi window": tiny(replace(NOPE, pattern=WINDOW), NOPE, position_bias=AlibiConfig()),
    "t5 buckets": tiny(replace(NOPE, scale=1.0), position_bias=RelativePositionBiasConfig(8, 16)),
    "learned": tiny(NOPE, embedding=LEARNED),
    "sinusoidal": tiny(NOPE, embedding=EmbeddingConfig(positions="sinusoidal")),
    "relative_position_vectors": tiny(replace(NOPE, relative_position_vectors=RelativePositionVectorsConfig(4))),
    "shaw window": tiny(
        replace(NOPE, relative_position_vectors=RelativePositionVectorsConfig(4, on_values=False), pattern=WINDOW)
    ),
    "soft cap": tiny(attention(soft_cap=2.0), head=HeadConfig(tied=False, soft_cap=3.0)),
    "soft cap window": tiny(attention(soft_cap=2.0, pattern=WINDOW, kv_heads=2), attention(soft_cap=2.0)),
    "qk norm": tiny(attention(qk_norm=QKNormConfig(over="width"))),
    "value residual": tiny(attention(kv_heads=2), *[attention(kv_heads=2, value_residual=True)] * 2),
    "temperature": tiny(
        attention(temperature=AttentionTemperatureConfig(4, 0.5), qk_norm=QKNormConfig(after_rotary=True))
    ),
    "parallel": tiny(attention(), block={"branches": "parallel"}),
    "post-norm": tiny(attention(), block={"placement": "post"}, final_norm=None),
}

CORNERS = ("gqa", "chunk", "3:1 with nope", "two windows", "alibi window", "learned", "shaw window", "value residual")
"""Kinds that a cache stores differently, for tests that depend only on storage."""


def build(config: TransformerConfig, seed: int = 0) -> Transformer:
    """Return a model with random weights."""
    torch.manual_seed(seed)
    return Transformer(config).eval()


def encoder_decoder(seed: int = 0, **changes: Any) -> EncoderDecoder:
    """Return a T5-like model: buckets in both parts, grouped keys in the decoder."""
    torch.manual_seed(seed)
    reading = tiny(
        replace(NOPE, pattern=AttentionPattern(causal=False)),
        position_bias=RelativePositionBiasConfig(8, 16, causal=False),
        **changes,
    )
    writing = tiny(replace(NOPE, kv_heads=3), position_bias=RelativePositionBiasConfig(8, 16), **changes)
    return EncoderDecoder(EncoderDecoderConfig(reading, writing)).eval()


def random_tokens(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))
