"""The number of processes per kind of parallelism, and the collective operations for one process."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import torch
from torch import Tensor, nn

from lmcourse.base.errors import CourseError
from lmcourse.nn.checks import check_choice
from lmcourse.training.optimizers.muon import Muon

if TYPE_CHECKING:
    from lmcourse.training.training_config import TrainingConfig

T = TypeVar("T")

PipelineSchedule = Literal["gpipe", "1f1b"]

PARALLEL_DIMS = ("pipeline_parallel", "data_parallel", "fsdp", "tensor_parallel")
"""The dimensions of the device mesh, which are fields of `Parallelism`. Processes along the last dimension communicate
most; their ranks are consecutive, so that they are on the same machine."""


@dataclass(frozen=True)
class Parallelism:
    """The sizes of the parallel dimensions, whose product is the number of processes.

    Attributes:
        data_parallel: copies of the model that see different windows (DDP)
        fsdp: processes that see different windows and divide weights, gradients and optimizer state among them: FSDP2,
            which is ZeRO's stage 3 (Rajbhandari et al., 2020)
        tensor_parallel: processes that divide every matrix (Shoeybi et al., 2019)
        sequence_parallel: let the processes that divide the matrices also divide the activations between the
            matrices, along the tokens (Korthikanti et al., 2022)
        pipeline_parallel: stages, each with some of the blocks (Huang et al., 2019)
        pipeline_schedule: the order in which the stages work: "gpipe", or "1f1b" (Narayanan et al., 2021), which keeps
            fewer activations

    Raises:
        ValueError: a number is out of range.
    """

    data_parallel: int = 1
    fsdp: int = 1
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    pipeline_parallel: int = 1
    pipeline_schedule: PipelineSchedule = "1f1b"

    def __post_init__(self) -> None:
        check_choice("pipeline_schedule", self.pipeline_schedule, PipelineSchedule)
        for name in PARALLEL_DIMS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.sequence_parallel and self.tensor_parallel == 1:
            raise ValueError(
                "sequence parallelism works only together with tensor parallelism: set tensor_parallel above 1"
            )

    @property
    def world_size(self) -> int:
        """The number of processes: the product of all dimensions."""
        return math.prod(getattr(self, name) for name in PARALLEL_DIMS)

    @property
    def dp_size(self) -> int:
        """The number of data-parallel processes, which see different windows: DDP × FSDP2."""
        return self.data_parallel * self.fsdp


ONE_PROCESS = Parallelism()


class DistributedContext:
    """The context of a run on one process, in which every collective operation returns its input.

    `lmcourse.training.parallel.process_group_context` overrides them for several processes.

    Attributes:
        dp_rank: the rank of this process among those that see different windows.
        dp_size: the number of processes that see different windows.
        rank: the rank of this process among all processes.
        world_size: the number of all processes.
        rng_stream: processes with different numbers draw different random numbers.
        muon: the class of the optimizer for matrices; it depends on how the processes divide them.
    """

    dp_rank, dp_size, rng_stream, rank, world_size = 0, 1, 0, 0, 1
    muon: type[Muon] = Muon

    @property
    def is_main(self) -> bool:
        """True on rank 0, which writes metrics and prints."""
        return self.rank == 0

    def parallelize(self, model: nn.Module, config: TrainingConfig) -> tuple[nn.Module, nn.Module]:
        """Divide a model, in place, as `TrainingConfig.parallel` says; raise ValueError if that is impossible.

        Return the module that has this process's weights, and the module to call in a step: here both are the model.
        """
        return model, model

    def group_by_mesh(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        """Group parameters that are on the same processes, because torch's operations on lists do not mix meshes."""
        return [parameters]

    def local_part(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """Return this process's part of a sharded tensor (DTensor), and the offset of the part in the whole tensor."""
        return tensor, (0,) * tensor.dim()

    def no_sync(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Return the context for a micro-batch: as in DDP, only a step's last one all-reduces gradients."""
        return nullcontext()

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over the data-parallel processes; the input is not changed."""
        return value

    def broadcast(self, value: T) -> T:
        """Return the value of rank 0, on all processes."""
        return value

    def all_gather(self, value: T) -> list[T]:
        """Return the values of all processes, by rank."""
        return [value]

    def first(self, value: T | None) -> T | None:
        """Return the value of the lowest rank that has one, on all processes; None if no rank has one."""
        return value

    def clip_grad_norm(self, parameters: Iterable[nn.Parameter], limit: float | None) -> Tensor:
        """Scale gradients to a norm of at most `limit`, if any (Pascanu et al., 2013); return their norm before."""
        return nn.utils.clip_grad_norm_(parameters, math.inf if limit is None else limit)

    def make_error(self, message: str) -> BaseException:
        """Return the exception that stops all processes: rank 0 prints the error, the other ranks only exit."""
        return CourseError(message)


SINGLE_PROCESS = DistributedContext()
"""The context of every run on one process."""


def make_context(parallel: Parallelism, device: torch.device) -> DistributedContext:
    """Return the context of a process; raise CourseError if the process group does not have the run's size."""
    if parallel.world_size == 1:
        return SINGLE_PROCESS
    # Imported here because the import is slow and a run on one process does not need it.
    from lmcourse.training.parallel.process_group_context import ProcessGroupContext

    return ProcessGroupContext(parallel, device)
