"""Relative positions as learned vectors on keys and values (Shaw et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class ShawConfig:
    """Relative position vectors.

    Attributes:
        farthest: distances beyond ±farthest share a vector, so there are 2 · farthest + 1.
        values: whether values have them too, or keys only.
    """

    farthest: int
    values: bool = True

    def __post_init__(self) -> None:
        if self.farthest < 1:
            raise ValueError(f"the farthest distance must be at least 1, not {self.farthest}")


class Shaw(nn.Module):
    """Adds q·a to the scores, and the weighted sum of a′ to the results, shared by all heads."""

    def __init__(self, config: ShawConfig, d_head: int) -> None:
        super().__init__()
        self.farthest = config.farthest
        self.keys = nn.Embedding(2 * config.farthest + 1, d_head)
        self.values = nn.Embedding(2 * config.farthest + 1, d_head) if config.values else None

    def index(self, query: Int[Tensor, "b s"], key: Int[Tensor, "b t"]) -> Int[Tensor, "b s t"]:
        """Which vector belongs to each pair: the clipped distance key − query, counted from 0."""
        distance = key[:, None, :] - query[:, :, None]
        return distance.clamp(-self.farthest, self.farthest) + self.farthest

    def scores(self, q: Float[Tensor, "b h s d"], index: Int[Tensor, "b s t"]) -> Float[Tensor, "b h s t"]:
        """q·a for every pair: first with each of the 2k + 1 vectors, then picked. No s × t × d tensor is made."""
        per_vector = einsum(q, self.keys.weight, "b h s d, r d -> b h s r")
        return per_vector.gather(-1, index[:, None].expand(-1, q.shape[1], -1, -1))

    def results(
        self, weights: Float[Tensor, "b h s t"], index: Int[Tensor, "b s t"]
    ) -> Float[Tensor, "b h s d"] | float:
        """The part of the result that comes from the value vectors: weights are summed per vector first."""
        if self.values is None:
            return 0.0
        vectors = self.values.weight
        per_vector = weights.new_zeros(*weights.shape[:3], vectors.shape[0])
        per_vector = per_vector.scatter_add(-1, index[:, None].expand_as(weights), weights)
        return einsum(per_vector, vectors, "b h s r, r d -> b h s d")
