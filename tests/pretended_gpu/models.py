"""The models that work on a pretended GPU."""

from __future__ import annotations

from typing import Any

from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern
from lmcourse.models.zoo.styles import llama_like, window
from lmcourse.nn.qk_norm import QKNormConfig

SIZES: dict[str, Any] = {"vocab_size": 256, "context": 64}


def plain() -> Transformer:
    """As many heads of keys as of queries."""
    return Transformer(modern(2, 32, 4, 64)).cuda()


def grouped() -> Transformer:
    """Two query heads share the keys of one."""
    return Transformer(llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), **SIZES)).cuda()


def windows() -> Transformer:
    """The same, and every other layer has a window of 8."""
    config = llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), layer_pattern=window(8, 2), **SIZES)
    return Transformer(config).cuda()
