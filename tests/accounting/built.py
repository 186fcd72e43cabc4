"""Build models whose operators are counted."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from tests.models.tiny import LENGTH


def on_cpu(config: TransformerConfig) -> tuple[Transformer, Tensor]:
    """Return a small model and a batch of tokens. It is on the CPU, because most operators of the meta device are slow
    Python code."""
    return Transformer(config), torch.zeros(2, LENGTH, dtype=torch.long)


def on_meta(config: TransformerConfig) -> tuple[Transformer, Tensor]:
    """Return a model of any size on the meta device, and a batch of tokens."""
    with torch.device("meta"):
        return on_cpu(config)
