"""The processes of a run, as one of them sees them. On one process there is nothing to share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from lmcourse.errors import CourseError
from lmcourse.training.parallelism import Parallelism

if TYPE_CHECKING:
    from lmcourse.training.config import TrainingConfig

T = TypeVar("T")


class Team:
    """A process that trains alone. `lmcourse.training.parallel.process_team` has the one that does not.

    Attributes:
        reader: which of the processes this is that see different windows.
        readers: how many of them there are.
        rank: its number among all processes.
        stream: processes with different numbers draw different random numbers.
    """

    reader, readers, stream, rank = 0, 1, 0, 0

    @property
    def leader(self) -> bool:
        """Whether this process writes metrics, and speaks for all."""
        return self.rank == 0

    def divide(self, model: nn.Module, config: TrainingConfig) -> tuple[nn.Module, nn.Module]:
        """This process's part of a model: the module that has its weights, and the one to call. Usually it is one."""
        return model, model

    def lists(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        """Parameters in groups that an optimiser can update in one go."""
        return [parameters]

    def waiting(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """While a micro-batch goes through the model. Gradients are shared once, after the last."""
        return nullcontext()

    def total(self, value: Tensor) -> Tensor:
        """The sum over the readers."""
        return value

    def decide(self, value: T) -> T:
        """The leader's value, on all."""
        return value

    def gather(self, value: T) -> list[T]:
        """The values of all processes, in order."""
        return [value]

    def clip_grad_norm(self, parameters: Iterable[nn.Parameter], limit: float | None) -> Tensor:
        """The norm of all gradients together; if it is above the limit, they are scaled down to that."""
        return nn.utils.clip_grad_norm_(parameters, math.inf if limit is None else limit)

    def stop(self, message: str) -> BaseException:
        """What to raise when all processes stop for the same reason, so that one of them tells it."""
        return CourseError(message)


ALONE = Team()


def assemble(parallel: Parallelism, device: torch.device) -> Team:
    """The team of this process.

    Raises:
        CourseError: another number of processes was started than the run is for.
    """
    if parallel.world_size == 1:
        return ALONE
    from lmcourse.training.parallel.process_team import ProcessTeam  # slow to import, and needless alone

    return ProcessTeam(parallel, device)
