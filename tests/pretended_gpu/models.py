"""Models for the simulated GPU."""

from __future__ import annotations

from typing import Any

from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern
from lmcourse.models.zoo.styles import llama_like, window
from lmcourse.nn.qk_norm import QKNormConfig

SIZES: dict[str, Any] = {"vocab_size": 256, "context": 64}


def plain() -> Transformer:
    """Return a model with as many key heads as query heads."""
    return Transformer(modern(2, 32, 4, 64)).cuda()


def grouped() -> Transformer:
    """Return a model in which two query heads share a key head."""
    return Transformer(llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), **SIZES)).cuda()


def windows() -> Transformer:
    """Return the same model with a window of 8 in every other layer."""
    config = llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), layer_pattern=window(8, 2), **SIZES)
    return Transformer(config).cuda()
