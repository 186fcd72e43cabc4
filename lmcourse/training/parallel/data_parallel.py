"""Data parallelism: every process has the whole model (DDP), or a share of every weight (FSDP2), or both (HSDP).

In all of them gradients are averaged over the data-parallel processes.
"""

from __future__ import annotations

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from lmcourse.training.transformer_blocks import find_blocks


def wrap_data_parallel(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Wrap a model in DDP or FSDP2, so that its gradients are averaged over the data-parallel processes.

    Returns the module to call in a step: with DDP a module around the model; with FSDP2 the model itself, changed in
    place. FSDP2 gathers a block's weights before it is computed and frees them afterwards; what is in no block is one
    more such unit.

    Args:
        model: the model or a stage of it, already sharded by tensor parallelism.
        mesh: of all processes.
    """
    ddp, fsdp, tensor = (mesh[dim].size() for dim in ("data_parallel", "fsdp", "tensor_parallel"))
    if ddp * fsdp == 1:
        return model
    if fsdp * tensor == 1:
        return DistributedDataParallel(model, process_group=mesh.get_group("data_parallel"))
    dp_mesh = mesh["data_parallel", "fsdp"] if ddp > 1 else mesh["fsdp"]
    for block in find_blocks(model):
        fully_shard(block, mesh=dp_mesh)
    # torch would keep the rest unsharded until the backward pass. After an evaluation there is none, and a checkpoint
    # has to find the shards.
    fully_shard(model, mesh=dp_mesh, reshard_after_forward=True)
    return model
