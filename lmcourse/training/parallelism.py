"""How processes share the work: the number of processes per kind of parallelism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lmcourse.nn.checks import check_choice

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
