"""Models on the meta device: shapes without numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from tests.models.tiny import LENGTH


def on_meta(config: TransformerConfig) -> tuple[Transformer, Tensor]:
    """A model without memory, and a batch of tokens for it."""
    with torch.device("meta"):
        return Transformer(config), torch.zeros(2, LENGTH, dtype=torch.long)
