"""What a reader's own loop needs around the course's models: dice, and a form for a cache of one's own."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Dice:
    """Random numbers from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def chances(self, n: int) -> Float[Tensor, " n"]:
        """Return n uniform random numbers in [0, 1)."""
        return torch.rand(n, generator=self._generator, dtype=torch.float64)

    def draw(self, p: Float[Tensor, " v"]) -> int:
        """Draw a token from a distribution."""
        return int(torch.multinomial(p, 1, generator=self._generator))


class InOurModel:
    """A `KVCache` of yours, in the form in which the course's models ask for one: they also want positions."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def __len__(self) -> int:
        return len(self.cache)

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens."""
        self.cache.truncate(tokens)

    def begin(self, tokens: Int[Tensor, "b s"], positions: object = None) -> tuple[Int[Tensor, "b s"], bool]:
        """Return the positions of the new tokens: after the tokens in the cache."""
        past = len(self.cache)
        return torch.arange(past, past + tokens.shape[1]).expand(tokens.shape), True

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return all keys and values of a layer, and their positions."""
        keys, values = self.cache.append(layer, k, v)
        return keys, values, torch.arange(keys.shape[2]).expand(len(keys), -1)
