"""The blocks of a model: the units of activation checkpointing, pipeline stages and FSDP2."""

from __future__ import annotations

from torch import nn


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """The entries of every list of blocks (`blocks`) in a model, in order; none if it has no such list."""
    lists = [getattr(module, "blocks", None) for module in model.modules()]
    return [block for found in lists if isinstance(found, nn.ModuleList | nn.ModuleDict) for block in found.children()]
