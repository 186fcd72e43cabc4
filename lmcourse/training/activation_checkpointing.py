"""Activation checkpointing: keep the inputs of blocks only, and compute the rest again (Chen et al., 2016)."""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from lmcourse.training.transformer_blocks import find_blocks


def apply_activation_checkpointing(model: nn.Module) -> None:
    """Checkpoint every block of a model, in place: the backward pass computes it again. A second call changes nothing.

    Between the two passes only the blocks' inputs are kept. The second pass draws the same dropout as the first. Names
    of parameters stay as they are.

    Raises:
        ValueError: the model has no list of blocks.
    """
    blocks = find_blocks(model)
    if not blocks:
        raise ValueError(
            f"{type(model).__name__} has no blocks to compute again: train it with activation_checkpointing=False"
        )
    for block in blocks:
        if getattr(block.forward, "func", None) is not checkpoint:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
