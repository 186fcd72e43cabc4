"""What one of many processes asks of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lmcourse.errors import CourseError
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallel.gradients import add_up, by_mesh, by_pieces
from lmcourse.training.parallel.mesh import make_mesh
from lmcourse.training.parallel.parallelize import parallelize
from lmcourse.training.parallel.pipeline import Stage
from lmcourse.training.parallelism import Parallelism
from lmcourse.training.team import Team

T = TypeVar("T")


class ProcessTeam(Team):
    """One process of a group that is there already (see `processes`).

    Args:
        parallel: how the work is divided.
        device: this process's.

    Raises:
        CourseError: there is no group, or it has another number of processes.
    """

    def __init__(self, parallel: Parallelism, device: torch.device) -> None:
        started = dist.get_world_size() if dist.is_initialized() else 1
        if started != parallel.world_size:
            raise CourseError(f"the run is for {parallel.world_size} processes, and {started} were started")
        self.mesh, self.device = make_mesh(parallel, device.type), device
        copy, share, stage = (self.mesh.get_local_rank(side) for side in ("data_parallel", "fsdp", "pipeline_parallel"))
        self.reader, self.readers = copy * parallel.fsdp + share, parallel.dp_size
        # Processes that divide a matrix drop the same features of what they all have.
        self.stream = self.reader + parallel.dp_size * stage
        self.rank = dist.get_rank()
        self._twin: nn.Parameter | None = None

    def divide(self, model: nn.Module, config: TrainingConfig) -> tuple[nn.Module, nn.Module]:
        try:
            part, call = parallelize(model, config, self.mesh)
        except ValueError:
            if self.leader:
                raise
            raise SystemExit(2) from None  # all have the same to say
        self._twin = part.twin if isinstance(part, Stage) and part.last else None
        return part, call

    def lists(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        return by_mesh(parameters)

    def waiting(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        return model.no_sync() if isinstance(model, DistributedDataParallel) and not last else nullcontext()

    def total(self, value: Tensor) -> Tensor:
        there = value.to(self.device, copy=True)
        for side in ("data_parallel", "fsdp"):
            dist.all_reduce(there, group=self.mesh.get_group(side))
        return there.to(value.device)

    def decide(self, value: T) -> T:
        box = [value]
        dist.broadcast_object_list(box, 0, device=self.device)
        return box[0]

    def gather(self, value: T) -> list[T]:
        values: list[T] = [value] * dist.get_world_size()
        dist.all_gather_object(values, value)
        return values

    def clip_grad_norm(self, parameters: Iterable[nn.Parameter], limit: float | None) -> Tensor:
        learned = [p for p in parameters if p.grad is not None]
        for p in learned:
            add_up(p)
        # Some gradients are on several processes: each counts by its share of what there is of it altogether.
        square = torch.zeros((), device=self.device, dtype=torch.float64)
        for number, gradients in by_pieces([p for p in learned if p is not self._twin]).items():
            square += nn.utils.get_total_norm(gradients).double().square() * number
        dist.all_reduce(square)
        norm = (square * self.mesh["pipeline_parallel"].size() / self.mesh.size()).sqrt().float()
        for group in by_mesh(learned):
            nn.utils.clip_grads_with_norm_(group, math.inf if limit is None else limit, norm)
        return norm

    def stop(self, message: str) -> BaseException:
        return CourseError(message) if self.leader else SystemExit(2)
