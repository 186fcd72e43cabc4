"""Random tensors for the cases, drawn from a given generator."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.inputs import normal


def triple(
    random: Random, batch: int, heads: int, new: int, context: int, width: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries for `new` tokens, keys and values for `context` tokens."""
    return (
        normal(random, batch, heads, new, width, dtype=dtype),
        normal(random, batch, heads, context, width, dtype=dtype),
        normal(random, batch, heads, context, width, dtype=dtype),
    )
