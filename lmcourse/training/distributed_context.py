"""Collective operations of a training step; this base class is for a single process."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from torch import Tensor, nn

from lmcourse.errors import CourseError
from lmcourse.training.optimizers.muon import Muon

if TYPE_CHECKING:
    from lmcourse.training.config import TrainingConfig

T = TypeVar("T")


class DistributedContext:
    """The process of a run on one process: every collective operation returns what it was given.

    `lmcourse.training.parallel.process_group_context` overrides them for several processes.

    Attributes:
        dp_rank: the rank of this process among those that see different windows.
        dp_size: how many of them there are.
        rank: its rank among all processes.
        world_size: the number of all processes.
        rng_stream: processes with different numbers draw different random numbers.
        muon: the optimiser for matrices, as these processes divide them.
    """

    dp_rank, dp_size, rng_stream, rank, world_size = 0, 1, 0, 0, 1
    muon: type[Muon] = Muon

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes metrics and prints."""
        return self.rank == 0

    def parallelize(self, model: nn.Module, config: TrainingConfig) -> tuple[nn.Module, nn.Module]:
        """Divide a model, in place, as `config.parallel` says.

        Returns:
            The module that holds this process's weights, and the one to call in a step; here the model itself.

        Raises:
            ValueError: the model cannot be divided like this.
        """
        return model, model

    def group_by_mesh(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        """Parameters in groups that lie on the same processes: torch's operations on lists do not mix meshes."""
        return [parameters]

    def local_part(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """Return the part of a sharded tensor (DTensor) that is on this process, and where in the whole it begins."""
        return tensor, (0,) * tensor.dim()

    def no_sync(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """The context for one micro-batch: gradients are all-reduced only in the last (`last`) of a step, as in DDP."""
        return nullcontext()

    def all_reduce_sum(self, value: Tensor) -> Tensor:
        """The sum of a tensor over the data-parallel processes; the tensor given stays as it is."""
        return value

    def broadcast(self, value: T) -> T:
        """The value of rank 0, on all processes."""
        return value

    def all_gather(self, value: T) -> list[T]:
        """The values of all processes, by rank."""
        return [value]

    def first(self, value: T | None) -> T | None:
        """The value of the lowest rank that has one, on all processes; None if none has."""
        return value

    def clip_grad_norm(self, parameters: Iterable[nn.Parameter], limit: float | None) -> Tensor:
        """Scale gradients down to a norm of at most `limit`, if any (Pascanu et al., 2013).

        Returns:
            The norm of all gradients of the model before that, a scalar.
        """
        return nn.utils.clip_grad_norm_(parameters, math.inf if limit is None else limit)

    def make_error(self, message: str) -> BaseException:
        """The exception to raise where all processes stop for one reason: rank 0 prints it, the others only exit."""
        return CourseError(message)


SINGLE_PROCESS = DistributedContext()
"""The context of every run on one process."""
