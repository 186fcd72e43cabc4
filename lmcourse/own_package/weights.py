"""Convert the weights of a model of the course to the names in a learner's package."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from lmcourse.models.config import TransformerConfig
from lmcourse.models.parity.parts import decoder_weights
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.norm import NormConfig


def package_config(config: TransformerConfig) -> dict[str, Any]:
    """Return the sizes of a model for the package's `Config`; raise ValueError if it is not a plain LLaMA."""
    first = config.layers[0]
    attention, feed_forward = first.attention, first.feed_forward
    if config.final_norm is None or attention.rotary is None or config.context is None:
        raise ValueError("this model lacks a final norm, rotary embeddings or a maximum context length")
    sizes = {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "layers": len(config.layers),
        "heads": attention.heads,
        "kv_heads": attention.key_heads,
        "d_head": attention.head_width(config.d_model),
        "d_ff": feed_forward.width,
        "context": config.context,
        "theta": attention.rotary.theta,
        "eps": config.final_norm.eps,
        "tied": config.head.tied,
    }
    same = llama_like(
        len(config.layers),
        config.d_model,
        attention.heads,
        feed_forward.width,
        vocab_size=config.vocab_size,
        context=config.context,
        norm=NormConfig("rms", eps=config.final_norm.eps),
        theta=attention.rotary.theta,
        tied=config.head.tied,
        kv_heads=attention.kv_heads,
        d_head=attention.d_head,
    )
    if config != same:
        raise ValueError("this model differs from LLaMA in more than its sizes")
    return sizes


def package_weights(model: Transformer) -> dict[str, Tensor]:
    """Return the weights by their names in the package's file; a tied head is left out."""
    nested = decoder_weights(model)
    flat = {
        f"blocks.{n}.{name}": weight for n, block in enumerate(nested.pop("blocks")) for name, weight in block.items()
    }
    return {**nested, **flat}
