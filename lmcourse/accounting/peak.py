"""The most memory that a piece of work takes on a GPU, as its allocator counts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def measured_peak(work: Callable[[], Any], *, device: torch.device | str = "cuda") -> int:
    """Bytes allocated at the worst moment of the work, beyond what was allocated before it.

    The work is done twice. The first round fetches what stays: the workspaces of cuBLAS, and gradients and optimiser
    states, if it makes any.

    Args:
        work: a forward pass or a training step. What it returns is kept until the peak has been read.
        device: an NVIDIA GPU.

    Raises:
        ValueError: there is none; other devices do not count what they allocate.
    """
    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        raise ValueError("peak memory is measured by CUDA's allocator: this needs an NVIDIA GPU")
    work()
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = work()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    del result
    return peak
