"""A checkpoint of many processes: each writes what it has, in the format of `torch.distributed.checkpoint`.

__0_0.distcp …   weights and optimizer state, from each process
.metadata        which shard of which tensor is where
state.pt, checkpoint.json   as in `lmcourse.training.checkpoint_format`

Tensors have the names of a model without fused matrices (`split_linear`), and torch finds the shards that a process
needs: so any number of processes can read it, one too.

Read only checkpoints that you trust: .metadata is a pickle, and whoever wrote it chooses what is run when it is read.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from lmcourse.training.checkpoint_format import (
    MODEL,
    STATE,
    UnwrittenCheckpointError,
    commit_checkpoint,
    digest,
    is_sharded,
    load_state,
    make_staging_folder,
)
from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.optimizer_state import OptimizerState, get_optimizer_state, init_optimizer_state
from lmcourse.training.parallel.split_linear import FusedLinears, find_fused, split_tensor


def write_sharded(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    manifest: Mapping[str, Any],
    distributed: DistributedContext,
) -> None:
    """Write a checkpoint, each process its part. It appears under its name when all of it is on the disk.

    Args:
        path: the folder, which all processes must be able to reach. One that is there already is replaced.
        model, optimizer: this process's part.
        state, manifest: as in `write_full`; those of rank 0 count.
        distributed: the processes.
    """
    init_optimizer_state(optimizer)
    staging = distributed.broadcast(make_staging_folder(path) if distributed.is_main else None)
    assert staging is not None
    try:
        save(_tensors(model, get_optimizer_state(optimizer, model), find_fused(model)), checkpoint_id=staging)
    except CheckpointException as error:  # on all processes, if one of them could not write
        if distributed.is_main:
            shutil.rmtree(staging, ignore_errors=True)
        [reason, *_] = (str(failure) for failure, _ in error.failures.values())
        raise distributed.make_error(str(UnwrittenCheckpointError.of(path, reason))) from None
    if distributed.is_main:
        torch.save(dict(state), staging / STATE)
    digests = _digests(staging, distributed)
    if distributed.is_main:
        commit_checkpoint(staging, path, manifest, digests)
    distributed.broadcast(None)  # a barrier: no process goes on before it is there


def _digests(folder: Path, distributed: DistributedContext) -> dict[str, str]:
    """The SHA-256 of all files of a folder, each computed by one process."""
    names = distributed.broadcast(sorted(path.name for path in folder.iterdir()))
    world_size = len(distributed.all_gather(None))
    mine = {name: digest(folder / name) for name in names[distributed.rank :: world_size]}
    return dict(sorted(pair for part in distributed.all_gather(mine) for pair in part.items()))


def load_sharded(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Load a sharded checkpoint into a whole model on one process, and into its optimizer, if one is given."""
    if optimizer is not None:
        init_optimizer_state(optimizer)
    moments = get_optimizer_state(optimizer, model) if optimizer is not None else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as it is asked to be
        load(_tensors(model, moments, find_fused(model)), checkpoint_id=path, no_dist=True)


def load_distributed(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, distributed: DistributedContext
) -> None:
    """Load a checkpoint into a model that is divided among processes, and into their optimizers.

    Any number of processes may have written it. A checkpoint of a single one is converted to this format first, in a
    temporary folder.
    """
    init_optimizer_state(optimizer)
    full = distributed.broadcast(not is_sharded(path))
    source = path.with_name(f".{path.name}.sharded") if full else path
    if full:
        fused_linears = {
            name: rows for found in distributed.all_gather(find_fused(model)) for name, rows in found.items()
        }
        if distributed.is_main:
            _convert(path, source, fused_linears)
        distributed.broadcast(None)
    load(_tensors(model, get_optimizer_state(optimizer, model), find_fused(model)), checkpoint_id=source)
    distributed.all_gather(None)  # all have read
    if full and distributed.is_main:
        shutil.rmtree(source)


def _convert(path: Path, target: Path, fused_linears: FusedLinears) -> None:
    """Write the tensors of a single process's checkpoint in this format, into a new folder `target`."""
    shutil.rmtree(target, ignore_errors=True)
    with safe_open(path / MODEL, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dictionary
        # A matrix with two names is stored under one of them.
        weights |= {name: weights[kept] for name, kept in (file.metadata() or {}).items() if kept in weights}
    moments: OptimizerState = load_state(path)["optimizer"]
    tensors = dict(_named(weights, moments, fused_linears))
    save(tensors, checkpoint_id=target, no_dist=True)


def _tensors(model: nn.Module, moments: OptimizerState, fused_linears: FusedLinears) -> dict[str, Tensor]:
    """The tensors of a checkpoint, as views of the model and optimizer: to load into them is to load into these."""
    return dict(_named({name: p.detach() for name, p in model.named_parameters()}, moments, fused_linears))


def _named(
    weights: Mapping[str, Tensor], moments: OptimizerState, fused_linears: FusedLinears
) -> Iterator[tuple[str, Tensor]]:
    """Names in the checkpoint and tensors, those of fused matrices split into their parts."""
    for name, weight in weights.items():
        for piece, value in split_tensor(name, weight, fused_linears):
            yield f"model.{piece}", value
    for name, parameter_state in moments.items():
        for key, moment in parameter_state.items():
            for piece, value in split_tensor(name, moment, fused_linears):
                yield f"optimizer.{piece}.{key}", value
