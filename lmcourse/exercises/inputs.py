"""Draw random tensors for cases from a given generator."""

from __future__ import annotations

from functools import partial
from random import Random

import torch
from torch import Tensor


def normal(random: Random, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor of this shape with entries from N(0, scale²), rounded to four digits and to `dtype`.

    So a report can show a small tensor as code that gives exactly its numbers.
    """
    numbers = [float(f"{random.gauss(0.0, scale):.4g}") for _ in range(torch.Size(shape).numel())]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).to(dtype)


normal64 = partial(normal, dtype=torch.float64)
"""`normal` in double precision, for exercises on gradients."""


def integers(random: Random, *shape: int, low: int = -1, high: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor of this shape with integers from `low` to `high`, both included.

    Products and sums of a few of them are exact, even in half precision.
    """
    numbers = [random.randint(low, high) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(numbers, dtype=dtype).reshape(shape)
