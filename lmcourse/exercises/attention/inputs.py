"""Random tensors for the cases, made from the generator that the grader seeds."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor


def normal(random: Random, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Entries from a normal distribution of this spread."""
    count = torch.Size(shape).numel()
    return torch.tensor([random.gauss(0.0, scale) for _ in range(count)], dtype=dtype).reshape(shape)


def whole(random: Random, *shape: int, low: int = -1, high: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    """Whole numbers from `low` to `high`: their products and sums are exact, in half precision too."""
    count = torch.Size(shape).numel()
    return torch.tensor([random.randint(low, high) for _ in range(count)], dtype=dtype).reshape(shape)


def triple(
    random: Random, batch: int, heads: int, new: int, context: int, width: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries for `new` tokens, keys and values for `context` tokens."""
    return (
        normal(random, batch, heads, new, width, dtype=dtype),
        normal(random, batch, heads, context, width, dtype=dtype),
        normal(random, batch, heads, context, width, dtype=dtype),
    )
