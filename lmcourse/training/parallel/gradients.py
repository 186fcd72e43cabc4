"""Gradients that are sharded over processes (DTensor): grouped for torch's list operations, partial sums reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor


def group_by_mesh(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Parameters in groups with the same device mesh, or none: torch's operations on lists do not mix them."""
    groups: dict[DeviceMesh | None, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
    return list(groups.values())


def reduce_partial_grad(parameter: nn.Parameter) -> None:
    """Sum a gradient over processes where DTensor has not yet (`Partial`), as for norms under sequence parallelism."""
    if isinstance(parameter, DTensor) and isinstance(parameter.grad, DTensor):
        parameter.grad = parameter.grad.redistribute(placements=parameter.placements)


def group_by_shard_count(parameters: Sequence[nn.Parameter]) -> dict[int, list[Tensor]]:
    """This process's shards of the gradients, by the number of shards that each gradient is divided into."""
    groups: dict[int, list[Tensor]] = {}
    for gradient in (p.grad for p in parameters):
        if isinstance(gradient, DTensor):
            mesh, placements = gradient.device_mesh, gradient.placements
            shards = [mesh.size(dim) for dim, placement in enumerate(placements) if not placement.is_replicate()]
            groups.setdefault(math.prod(shards), []).append(gradient.to_local())
        elif gradient is not None:
            groups.setdefault(1, []).append(gradient)
    return groups


def scale_gradients(parameters: Sequence[nn.Parameter], factor: Tensor) -> None:
    """Multiply gradients, in place, by a scalar of at most 1: what is larger counts as 1.

    As torch's `clip_grads_with_norm_` does, but on each process's shards: DTensor would ask for every gradient how the
    product is to be sharded.
    """
    gradients = (p.grad for p in parameters if p.grad is not None)
    shards = [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]
    if shards:
        torch._foreach_mul_(shards, factor.clamp(max=1.0))
