"""Random tensors for the cases, drawn from a given generator."""

from __future__ import annotations

from random import Random

from torch import Tensor

from lmcourse.exercises.inputs import normal


def triple(random: Random, batch: int, heads: int, new: int, context: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries for `new` tokens, keys and values for `context` tokens."""
    q = normal(random, batch, heads, new, width)
    return q, normal(random, batch, heads, context, width), normal(random, batch, heads, context, width)
