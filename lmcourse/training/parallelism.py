"""How many processes share a training step, and in which ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmcourse.nn.checks import check_choice

PipelineSchedule = Literal["gpipe", "1f1b"]


@dataclass(frozen=True)
class Parallelism:
    """The ways to divide a step, which multiply. Each is the length of one side of the device mesh.

    Attributes:
        replicate: copies of the model that see different windows: data parallelism (DDP).
        shard: processes that see different windows too, and divide weights, gradients and optimiser among them: FSDP2,
            which is ZeRO's stage 3 (Rajbhandari et al., 2020).
        tensor: processes that divide every matrix (Shoeybi et al., 2019).
        sequence: whether these divide what lies between the matrices too, along the tokens (Korthikanti et al., 2022).
        pipeline: stages, each with some of the blocks (Huang et al., 2019).
        schedule: the order in which the stages work: "gpipe", or "1f1b" (Narayanan et al., 2021), which keeps less.

    Raises:
        ValueError: a number makes no sense.
    """

    replicate: int = 1
    shard: int = 1
    tensor: int = 1
    sequence: bool = False
    pipeline: int = 1
    schedule: PipelineSchedule = "1f1b"

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, PipelineSchedule)
        for name in ("replicate", "shard", "tensor", "pipeline"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.sequence and self.tensor == 1:
            raise ValueError("sequence parallelism divides what tensor parallelism leaves whole: set tensor above 1")

    @property
    def processes(self) -> int:
        """All together."""
        return self.replicate * self.shard * self.tensor * self.pipeline

    @property
    def readers(self) -> int:
        """How many see different windows."""
        return self.replicate * self.shard


ONE_PROCESS = Parallelism()
