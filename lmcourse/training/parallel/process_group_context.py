"""Collective operations of a training step on the device mesh, for tensors that are sharded over it (DTensor)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.nn.parallel import DistributedDataParallel

from lmcourse.base.errors import CourseError
from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.optimizers.muon import Muon
from lmcourse.training.optimizers.rules import Group
from lmcourse.training.parallel.parallelize import make_mesh, parallelize
from lmcourse.training.parallel.pipeline_parallel import ModelStage
from lmcourse.training.parallel.tensor_parallel import reduce_partial_grad
from lmcourse.training.training_config import Parallelism, TrainingConfig

T = TypeVar("T")


class ShardedMuon(Muon):
    """Muon with momentum that is sharded in the same way as the matrix.

    Only a whole matrix can be made orthogonal. So every process gathers it, computes the same products, and keeps its
    shard of the result.
    """

    def average(self, gradient: Tensor, state: dict[str, Any], group: Group) -> Float[Tensor, "m n"]:
        """Return the momentum of `Muon`, gathered from all shards."""
        x = super().average(gradient, state, group)
        return x.full_tensor() if isinstance(x, DTensor) else x

    def descend(self, w: Tensor, parts: Sequence[Float[Tensor, "m n"]], group: Group) -> None:
        """Step as `Muon` does, with this process's shard."""
        if not isinstance(w, DTensor):
            super().descend(w, parts, group)
            return
        [whole] = parts  # sharded matrices are never fused, so there is one part
        copies = [Replicate()] * w.device_mesh.ndim
        shard = DTensor.from_local(whole, w.device_mesh, copies, run_check=False).redistribute(placements=w.placements)
        w.to_local().mul_(1 - group["lr"] * group["weight_decay"])
        w.to_local().add_(shard.to_local(), alpha=-self.rate(whole, group))


class ProcessGroupContext(DistributedContext):
    """One process of an initialised process group (see `process_group`); `mesh` is the device mesh of all processes."""

    muon = ShardedMuon

    def __init__(self, parallel: Parallelism, device: torch.device) -> None:
        self.mesh, self.device = make_mesh(parallel, device.type), device
        replica, shard, stage = map(self.mesh.get_local_rank, ("data_parallel", "fsdp", "pipeline_parallel"))
        self.dp_rank, self.dp_size = replica * parallel.fsdp + shard, parallel.dp_size
        # Processes of one tensor-parallel group must draw the same dropout masks, because they all have the same
        # activations.
        self.rng_stream = self.dp_rank + parallel.dp_size * stage
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self._tied_weight: nn.Parameter | None = None

    def parallelize(self, model: nn.Module, config: TrainingConfig) -> tuple[nn.Module, nn.Module]:
        """Divide a model. If that is impossible, rank 0 raises the ValueError and the other ranks exit."""
        try:
            part, call = parallelize(model, config, self.mesh)
        except ValueError:
            if self.is_main:
                raise
            raise SystemExit(2) from None  # every rank has the same error
        self._tied_weight = part.tied_weight if isinstance(part, ModelStage) and part.last else None
        return part, call

    def group_by_mesh(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        """Group parameters by their device mesh; parameters without a mesh form one group."""
        groups: dict[DeviceMesh | None, list[nn.Parameter]] = {}
        for parameter in parameters:
            groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
        return list(groups.values())

    def local_part(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """Return this process's part of a tensor and its offset, as in `torch.distributed.checkpoint`."""
        if not isinstance(tensor, DTensor):
            return tensor, (0,) * tensor.dim()
        _, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
        return tensor.to_local(), offset

    def no_sync(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Return DDP's `no_sync` context for every micro-batch except the last."""
        return model.no_sync() if isinstance(model, DistributedDataParallel) and not last else nullcontext()

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """Return the sum over the data-parallel processes, on the device of `value`."""
        total = value.to(self.device, copy=True)
        for dim in ("data_parallel", "fsdp"):
            dist.all_reduce(total, group=self.mesh.get_group(dim))
        return total.to(value.device)

    def broadcast(self, value: T) -> T:
        """Return the value of rank 0; it is pickled for the transfer."""
        values = [value]
        dist.broadcast_object_list(values, 0, device=self.device)
        return values[0]

    def all_gather(self, value: T) -> list[T]:
        """Return the values of all processes, by rank; they are pickled for the transfer."""
        values: list[T] = [value] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def first(self, value: T | None) -> T | None:
        """Return the value of the lowest rank that has one. If no rank has a value, only one number is sent."""
        having = torch.tensor(value is not None, dtype=torch.int32, device=self.device)
        dist.all_reduce(having)
        if not having.item():
            return None
        return next(theirs for theirs in self.all_gather(value) if theirs is not None)

    def clip_grad_norm(self, parameters: Iterable[nn.Parameter], limit: float | None) -> Tensor:
        """Clip by the norm over all processes; a gradient with copies on several processes counts once."""
        trained = [p for p in parameters if p.grad is not None]
        for p in trained:
            reduce_partial_grad(p)
        # The sum over all processes counts a gradient once for each copy. Weighted by its number of shards, every
        # gradient is counted world_size / pipeline_parallel times.
        square = torch.zeros((), device=self.device, dtype=torch.float64)
        for shard_count, gradients in group_by_shard_count([p for p in trained if p is not self._tied_weight]).items():
            square += nn.utils.get_total_norm(gradients).double().square() * shard_count
        dist.all_reduce(square)
        norm = (square * self.mesh["pipeline_parallel"].size() / self.mesh.size()).sqrt().float()
        scale_gradients(trained, (math.inf if limit is None else limit) / (norm + 1e-6))
        return norm

    def make_error(self, message: str) -> BaseException:
        """Return the error on rank 0, and a silent exit on the other ranks."""
        return CourseError(message) if self.is_main else SystemExit(2)


def group_by_shard_count(parameters: Sequence[nn.Parameter]) -> dict[int, list[Tensor]]:
    """Return this process's shards of the gradients, by the number of shards of each gradient."""
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
    """Multiply gradients, in place, by a scalar; values above 1 count as 1.

    This is torch's `clip_grads_with_norm_` for the shards of each process. DTensor would have to find out how to shard
    the product for every gradient.
    """
    gradients = (p.grad for p in parameters if p.grad is not None)
    shards = [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]
    if shards:
        torch._foreach_mul_(shards, factor.clamp(max=1.0))
