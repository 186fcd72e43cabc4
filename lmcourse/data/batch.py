"""A batch: input tokens and their targets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

IGNORE_INDEX = -100
"""Target that the loss ignores (torch's `ignore_index`): padding, or a prompt that is not trained on."""


@dataclass(frozen=True)
class Batch:
    """Input tokens, and the target that follows each.

    Attributes:
        inputs: tokens.
        targets: for every input the next token of the text.
    """

    inputs: Int[Tensor, "b s"]
    targets: Int[Tensor, "b s"]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device. From pinned memory, the copy to a GPU runs while the program continues."""
        ahead = device.type == "cuda"
        return Batch(self.inputs.to(device, non_blocking=ahead), self.targets.to(device, non_blocking=ahead))

    def pinned_for(self, device: torch.device) -> Batch:
        """Return the batch in pinned memory, which the GPU reads without the CPU."""
        with torch.cuda.device(device):  # else a new thread would reserve memory on the first GPU
            return Batch(self.inputs.pin_memory(), self.targets.pin_memory())
