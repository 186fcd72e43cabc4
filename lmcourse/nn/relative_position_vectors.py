"""Relative positions as learned vectors on keys and values (Shaw et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class RelativePositionVectorsConfig:
    """Settings of relative position vectors: the largest distance, and whether values have them too.

    Attributes:
        max_distance: distances beyond ±max_distance share a vector, so there are 2 · max_distance + 1.
        on_values: whether values have them too, or keys only.
    """

    max_distance: int
    on_values: bool = True

    def __post_init__(self) -> None:
        if self.max_distance < 1:
            raise ValueError(f"the max_distance distance must be at least 1, not {self.max_distance}")


class RelativePositionVectors(nn.Module):
    """Adds q·a to the scores, and the weighted sum of a′ to the results, shared by all heads."""

    def __init__(self, config: RelativePositionVectorsConfig, d_head: int) -> None:
        super().__init__()
        self.max_distance = config.max_distance
        self.keys = nn.Embedding(2 * config.max_distance + 1, d_head)
        self.values = nn.Embedding(2 * config.max_distance + 1, d_head) if config.on_values else None

    def index(self, query: Int[Tensor, "b s"], key: Int[Tensor, "b t"]) -> Int[Tensor, "b s t"]:
        """Which vector belongs to each pair: the clipped distance key − query, counted from 0."""
        distance = key[:, None, :] - query[:, :, None]
        return distance.clamp(-self.max_distance, self.max_distance) + self.max_distance

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
