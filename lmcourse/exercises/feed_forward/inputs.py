"""Inputs that several exercises share."""

from random import Random

import torch
from torch import Tensor

FEW = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])


def numbers(random: Random, *shape: int, scale: float = 2.0) -> Tensor:
    """Normal numbers with this spread."""
    size = torch.Size(shape).numel()
    return torch.tensor([random.gauss(0, 1) * scale for _ in range(size)]).reshape(shape)
