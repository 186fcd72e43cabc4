"""The context of this process: of one process, or of a process group."""

from __future__ import annotations

import torch

from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.parallelism import Parallelism


def make_context(parallel: Parallelism, device: torch.device) -> DistributedContext:
    """The context for a run that is divided like this.

    Args:
        parallel: how the work is divided.
        device: of this process.

    Raises:
        CourseError: the process group has another number of processes than the run is for.
    """
    if parallel.world_size == 1:
        return SINGLE_PROCESS
    # Imported here because it takes long, and one process does not need it.
    from lmcourse.training.parallel.process_group_context import ProcessGroupContext

    return ProcessGroupContext(parallel, device)
