"""Activation checkpointing: keep the inputs of blocks only, and compute the rest again (Chen et al., 2016)."""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint


def recompute_blocks(model: nn.Module) -> None:
    """Let every block of a model be computed a second time in its backward pass, in place.

    Between the two passes only the blocks' inputs are kept. The second pass draws the same dropout as the first. Names
    of parameters stay as they are.

    Raises:
        ValueError: the model has no list of blocks.
    """
    lists = [getattr(module, "blocks", None) for module in model.modules()]
    blocks = [block for found in lists if isinstance(found, nn.ModuleList) for block in found]
    if not blocks:
        raise ValueError(f"{type(model).__name__} has no blocks to compute again: train it with recompute=False")
    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
