"""Models whose operators are counted."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from tests.models.tiny import LENGTH


def on_cpu(config: TransformerConfig) -> tuple[Transformer, Tensor]:
    """A small model, and a batch of tokens for it. It has numbers, as that is faster: on the meta device most operators
    are Python."""
    return Transformer(config), torch.zeros(2, LENGTH, dtype=torch.long)


def on_meta(config: TransformerConfig) -> tuple[Transformer, Tensor]:
    """A model without memory, as large as it may be, and a batch of tokens for it."""
    with torch.device("meta"):
        return on_cpu(config)
