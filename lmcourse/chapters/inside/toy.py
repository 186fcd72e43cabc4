"""A model of two blocks that is small enough for the cases of an exercise."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor


def toy_run(tokens: Int[Tensor, "b s"], edit: Callable[[int, Tensor], Tensor] | None = None) -> float:
    """Return the odds of a toy model. As in `story_run`, `edit` sees the stream before, between and after two blocks.

    In each block a word hears of all words before it, and the odds are read at the last word.
    """
    used = edit or (lambda passed, stream: stream)
    numbers = tokens.double()
    stream = used(0, torch.stack([numbers, numbers.remainder(3)], dim=-1))
    for passed in (1, 2):
        heard: Float[Tensor, "b s d"] = stream.cumsum(dim=1) / torch.arange(1, tokens.shape[1] + 1)[:, None]
        stream = used(passed, stream + passed * heard.flip(-1) + heard.square() / 10)
    return (stream[:, -1] @ torch.tensor([1.0, -0.5], dtype=torch.float64)).mean().item()
