"""Every architecture of the zoo at a tiny size, with random weights that reveal mistakes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.zoo import all_models
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import LayerConfig

LENGTH = 21
"""Length of texts: longer than three windows of 5, and not a multiple of 5."""


def shrink(config: TransformerConfig) -> TransformerConfig:
    """Return the same architecture with small, odd sizes, which keep different shapes different."""
    wide = config.layers[0].attention.d_head is not None
    return replace(
        config,
        vocab_size=53,
        # 40 features per head, so that every rotated fraction in the zoo is an even number of features
        d_model=72 if wide else 160,
        layers=tuple(_shrink_layer(layer) for layer in config.layers[:6]),
        embedding=replace(
            config.embedding,
            max_positions=64 if config.embedding.max_positions else None,
            width=24 if config.embedding.width else None,
        ),
        context=64 if config.context else None,
    )


def _shrink_layer(layer: LayerConfig) -> LayerConfig:
    attention = layer.attention
    shared = {attention.heads: 4, 1: 1}.get(attention.key_heads, 2)
    pattern = attention.pattern if attention.pattern.kind == "full" else replace(attention.pattern, size=5)
    small = replace(attention, heads=4, kv_heads=shared, pattern=pattern, d_head=40 if attention.d_head else None)
    return LayerConfig(small, replace(layer.feed_forward, width=44))


def architectures() -> dict[str, TransformerConfig]:
    """Return a tiny decoder or encoder for each distinct architecture of the zoo, named after its first model."""
    found: dict[TransformerConfig, str] = {}
    for entry in all_models():
        if not isinstance(entry.config, EncoderDecoderConfig):
            found.setdefault(shrink(entry.config), entry.name)
    return {name: config for config, name in found.items()}


SPARSE = {
    kind: replace(
        (base := architectures()["llama-7b"]),
        layers=tuple(
            replace(layer, attention=replace(layer.attention, pattern=AttentionPattern(kind, 5)))
            for layer in base.layers
        ),
    )
    for kind in ("strided", "fixed")
}
"""Sparse patterns (Child et al., 2019) whose sizes GPT-3 does not publish, so no model of the zoo has them."""


def randomise(model: nn.Module, seed: int = 0) -> nn.Module:
    """Fill all parameters with random values, because the ones and zeros of new norms and biases would hide
    mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return model.eval()


def tokens(batch: int = 2, length: int = LENGTH, vocab_size: int = 53, seed: int = 1) -> torch.Tensor:
    """Return random token ids."""
    return torch.randint(vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))
