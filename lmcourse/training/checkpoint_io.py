"""Write and read checkpoints: from one process with `full_checkpoint`, of many with `parallel.sharded_checkpoint`.

The latter is slow to import and seldom needed, so functions that need it import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lmcourse.training.checkpoint_format import is_sharded
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.full_checkpoint import load_full, write_full
from lmcourse.training.optimizer_state import get_optimizer_state, set_optimizer_state


def write_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    manifest: Mapping[str, Any],
    distributed: DistributedContext,
) -> None:
    """Write a checkpoint; it appears under its name when all of it is on the disk. All processes call this.

    Args:
        path: the folder, which all processes must be able to reach. One that is there already is replaced.
        model, optimizer: this process's part.
        state: tensors and plain values; those of rank 0 count.
        manifest: what can be read without torch, as JSON; that of rank 0 counts.
        distributed: the processes.
    """
    if distributed is SINGLE_PROCESS:
        write_full(path, model, {**state, "optimizer": get_optimizer_state(optimizer, model)}, manifest)
    else:
        from lmcourse.training.parallel.sharded_checkpoint import write_sharded

        write_sharded(path, model, optimizer, state, manifest, distributed)


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    distributed: DistributedContext,
) -> None:
    """Give a model its weights and an optimizer its state, which keeps its settings. All processes call this.

    Args:
        path: the checkpoint, of any number of processes; one of many must be trusted, since it holds a pickle.
        model, optimizer: this process's part.
        state: what `load_state` gave.
        distributed: the processes.
    """
    if distributed is SINGLE_PROCESS and not is_sharded(path):
        load_full(path, model)
        set_optimizer_state(optimizer, model, state["optimizer"])
        return
    from lmcourse.training.parallel.sharded_checkpoint import load_distributed, load_sharded

    if distributed is SINGLE_PROCESS:
        load_sharded(path, model, optimizer)
    else:
        load_distributed(path, model, optimizer, distributed)


def load_weights(path: Path, model: nn.Module) -> None:
    """Give a whole model on one device the weights of a checkpoint; a sharded one must be trusted (it has a pickle)."""
    if is_sharded(path):
        from lmcourse.training.parallel.sharded_checkpoint import load_sharded

        load_sharded(path, model)
    else:
        load_full(path, model)
