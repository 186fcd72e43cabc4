"""Activation checkpointing: keep only the inputs of a model's blocks, and compute the rest again."""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint


def apply_activation_checkpointing(model: nn.Module) -> None:
    """Checkpoint every block of a model, in place: the backward pass computes the block again (Chen et al., 2016).

    Between the two passes only the blocks' inputs are kept. The second pass uses the same dropout masks as the first.
    The names of parameters do not change. A model without a list of blocks raises ValueError.
    """
    blocks = find_blocks(model)
    if not blocks:
        raise ValueError(
            f"{type(model).__name__} has no blocks to recompute: train it with activation_checkpointing=False"
        )
    for block in blocks:
        if getattr(block.forward, "func", None) is not checkpoint:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the entries of every list of blocks (`blocks`) in a model, in order; none if it has no such list."""
    lists = [getattr(module, "blocks", None) for module in model.modules()]
    return [block for found in lists if isinstance(found, nn.ModuleList | nn.ModuleDict) for block in found.children()]
