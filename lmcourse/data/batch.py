"""A batch: input tokens and their targets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

IGNORE_INDEX = -100
"""The target that the loss ignores (torch's `ignore_index`), for padding or for prompts that are not trained on."""


@dataclass(frozen=True)
class Batch:
    """Input tokens, and for each the next token in the text as its target."""

    inputs: Int[Tensor, "b s"]
    targets: Int[Tensor, "b s"]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device. From pinned memory, the copy to a GPU runs while the program continues."""
        ahead = device.type == "cuda"
        return Batch(self.inputs.to(device, non_blocking=ahead), self.targets.to(device, non_blocking=ahead))

    def pinned_for(self, device: torch.device) -> Batch:
        """Return the batch in pinned memory, which the GPU can read without the CPU."""
        with torch.cuda.device(device):  # otherwise a new thread would reserve memory on the first GPU
            return Batch(self.inputs.pin_memory(), self.targets.pin_memory())
