"""The process group of a run, from the environment that torchrun sets, and the context of a process in it."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from lmcourse.base.errors import CourseError
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.training_config import PARALLEL_DIMS, Parallelism

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


@dataclass(frozen=True)
class ProcessInfo:
    """Rank of one process of a run, from 0, and the device for its part of the model."""

    rank: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """True for the process that prints."""
        return self.rank == 0


@contextmanager
def process_group(
    parallel: Parallelism,
    device: torch.device,
    *,
    init_method: str = "env://",
    timeout: timedelta = timedelta(minutes=10),
) -> Iterator[ProcessInfo]:
    """Initialise torch's process group for a `with` block, and destroy it afterwards.

    Nothing is initialised for a run on one process. Otherwise torchrun has started this program several times, and set
    RANK, LOCAL_RANK and WORLD_SIZE in the environment of each. Yields this process's rank and its device of the given
    type: with several GPUs, the one with the number LOCAL_RANK. Raises CourseError if the number of started processes
    is wrong, the device is missing, or another process has ended. `init_method` is torch's, and `timeout` is how long a
    process waits for the others in a collective.
    """
    rank, started = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    _check_world_size(parallel, started)
    if parallel.world_size == 1:
        yield ProcessInfo(0, device)
        return
    device = _own_device(device)
    dist.init_process_group(BACKENDS[device.type], init_method, timeout=timeout, rank=rank, world_size=started)
    try:
        with _mute_other_ranks(rank):
            yield ProcessInfo(rank, device)
        dist.barrier()  # torchrun ends all processes as soon as one has failed
    except (RuntimeError, dist.DistError) as error:
        if not _is_lost_connection(error):
            raise
        raise CourseError(f"process {rank} stops: another process ended; its error message, if any, is above") from None
    finally:
        dist.destroy_process_group()


def make_context(parallel: Parallelism, device: torch.device) -> DistributedContext:
    """Return the context of a process; raise CourseError if the process group does not have the run's size."""
    if parallel.world_size == 1:
        return SINGLE_PROCESS
    _check_world_size(parallel, dist.get_world_size() if dist.is_initialized() else 1)
    # Imported here because the import is slow and a run on one process does not need it.
    from lmcourse.training.parallel.process_group_context import ProcessGroupContext

    return ProcessGroupContext(parallel, device)


def _check_world_size(parallel: Parallelism, started: int) -> None:
    if parallel.world_size != started:
        sides = " × ".join(f"{side} {getattr(parallel, side)}" for side in PARALLEL_DIMS if getattr(parallel, side) > 1)
        raise CourseError(
            f"the run is for {parallel.world_size} processes ({sides or 'no parallelism'}), but {started} were "
            f"started: use torchrun --nproc-per-node {parallel.world_size}, or change how the work is divided"
        )


def _own_device(device: torch.device) -> torch.device:
    """Return this process's device of a type."""
    if device.type not in BACKENDS:
        raise CourseError(f"torch cannot communicate between {device.type} devices: train on cpu or cuda")
    if device.type == "cpu":
        return device
    index, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if index >= there:
        raise CourseError(f"process {index} of this machine has no GPU: there are {there}: start that many processes")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


@contextmanager
def _mute_other_ranks(rank: int) -> Iterator[None]:
    """Log warnings only on rank 0, because all ranks have the same warnings."""
    logger = logging.getLogger("lmcourse")
    level = logger.level
    if rank > 0:
        logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # It warns against changing outputs in place, and we do not change logits in place.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module")
        try:
            yield
        finally:
            logger.setLevel(level)


def _is_lost_connection(error: BaseException) -> bool:
    """Return True if the connection to another process was lost. gloo says so only in a RuntimeError's text."""
    text = str(error).lower()
    return any(words in text for words in ("connection closed by peer", "connection reset by peer", "broken pipe"))
