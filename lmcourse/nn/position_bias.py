"""Relative positions: as a bias on attention scores (ALiBi, T5), or as vectors on keys and values (Shaw et al., 2018).

A bias depends on the distance between query and key, and on the head. It is the same in every layer, so a model
computes it once per pass. The vectors are different in each layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.nn.fp32_buffer import Fp32Buffer


def alibi_slopes(heads: int) -> Float[Tensor, " heads"]:
    """Return ALiBi's slope for every head (Press et al., 2022).

    If n is a power of two, the slopes are 2^(−8/n), 2^(−16/n), …, 2^−8. Otherwise they are the slopes for the next
    smaller power of two, and then every other slope for the next larger power.
    """
    power = 2 ** math.floor(math.log2(heads))
    slopes = 2.0 ** (-8.0 / power * torch.arange(1, power + 1))
    between = 2.0 ** (-4.0 / power * (2 * torch.arange(heads - power) + 1))
    return torch.cat([slopes, between])


@dataclass(frozen=True)
class AlibiConfig:
    """Settings of ALiBi: a penalty of slope × distance on the scores, in both directions if attention is not causal.

    The paper is about causal attention only. Published encoders use the distance without its sign (Portes et al., 2023,
    MosaicBERT and its code): if it were clamped at 0, all later tokens would be as near as the token itself.

    Attributes:
        falcon_bf16: whether to round slopes and products to bf16, and to divide them by √d_head together with the
            scores, as Falcon does. This is only for causal attention: it adds slope × the key's position, which would
            favour later tokens.
    """

    falcon_bf16: bool = False


@dataclass(frozen=True)
class RelativePositionBiasConfig:
    """Settings of T5's relative position bias: a learned number per head and range of distances (Raffel et al., 2020).

    Attributes:
        buckets: the number of ranges.
        max_distance: the distance from which all distances share the last bucket.
        causal: whether all buckets are for earlier tokens; otherwise half of them are for later tokens.
    """

    buckets: int = 32
    max_distance: int = 128
    causal: bool = True

    def __post_init__(self) -> None:
        one_way = self.buckets if self.causal else self.buckets // 2
        if one_way < 2 or self.max_distance <= one_way // 2 or (not self.causal and self.buckets % 2):
            raise ValueError(
                "each direction needs the same number of buckets, at least 2, and a max_distance above half that "
                f"number; got {self.buckets} buckets and a max_distance of {self.max_distance}"
            )


class Alibi(nn.Module):
    """ALiBi: −slope · |query − key|, the same for every layer, without learned parameters."""

    def __init__(self, config: AlibiConfig, heads: int, d_head: int) -> None:
        super().__init__()
        self.falcon_bf16 = config.falcon_bf16
        self.factor = d_head**-0.5 if config.falcon_bf16 else 1.0
        self.slopes = Fp32Buffer(partial(alibi_slopes, heads))

    def forward(self, query: Int[Tensor, "b s"], key: Int[Tensor, "b t"]) -> Float[Tensor, "b h s t"]:
        """Return the bias on the score of every pair of these positions."""
        # Adding a constant to a row does not change its softmax, so slope · key would be enough; the distance keeps
        # numbers small. The rounded form must match Falcon bit for bit.
        if self.falcon_bf16:
            product: Tensor = self.slopes().bfloat16()[:, None, None] * key[:, None, None, :].bfloat16()
            return product.float() * self.factor
        distance = (query[:, :, None] - key[:, None, :]).abs()
        penalty: Tensor = self.slopes()[:, None, None] * distance[:, None]
        return -penalty


class RelativePositionBias(nn.Module):
    """T5's relative position bias: a learned number per head and bucket of distances."""

    def __init__(self, config: RelativePositionBiasConfig, heads: int) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Embedding(config.buckets, heads)

    def forward(self, query: Int[Tensor, "b s"], key: Int[Tensor, "b t"]) -> Float[Tensor, "b h s t"]:
        """Return the bias on the score of every pair of these positions."""
        bias: Tensor = self.table(bucket(query[:, :, None] - key[:, None, :], self.config))
        return rearrange(bias, "b s t h -> b h s t")


def bucket(distance: Int[Tensor, "*shape"], config: RelativePositionBiasConfig) -> Int[Tensor, "*shape"]:
    """Return the bucket of each distance (query − key): of its own if small, of a logarithmic range if large."""
    count = config.buckets if config.causal else config.buckets // 2
    future = 0 if config.causal else (distance < 0) * count
    distance = distance.clamp(min=0) if config.causal else distance.abs()
    exact = count // 2
    ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(config.max_distance / exact)
    shared = (exact + (ratio * (count - exact)).long()).clamp(max=count - 1)
    return future + torch.where(distance < exact, distance, shared)


@dataclass(frozen=True)
class RelativePositionVectorsConfig:
    """Settings of relative position vectors: the largest distance, and whether values get vectors, too.

    Attributes:
        max_distance: distances beyond ±max_distance share a vector, so there are 2 · max_distance + 1 vectors.
        on_values: whether values get vectors, too, or only keys.
    """

    max_distance: int
    on_values: bool = True

    def __post_init__(self) -> None:
        if self.max_distance < 1:
            raise ValueError(f"max_distance must be at least 1, not {self.max_distance}")

    @property
    def count(self) -> int:
        """The number of vectors on keys and values together."""
        return (1 + self.on_values) * (2 * self.max_distance + 1)


class RelativePositionVectors(nn.Module):
    """Add q·a to the scores, and the weighted sum of a′ to the results; all heads share the vectors."""

    def __init__(self, config: RelativePositionVectorsConfig, d_head: int) -> None:
        super().__init__()
        self.max_distance = config.max_distance
        self.keys = nn.Embedding(2 * config.max_distance + 1, d_head)
        self.values = nn.Embedding(2 * config.max_distance + 1, d_head) if config.on_values else None

    def index(self, query: Int[Tensor, "b s"], key: Int[Tensor, "b t"]) -> Int[Tensor, "b s t"]:
        """Return the index of each pair's vector: the clipped distance key − query, counted from 0."""
        distance = key[:, None, :] - query[:, :, None]
        return distance.clamp(-self.max_distance, self.max_distance) + self.max_distance

    def scores(self, q: Float[Tensor, "b h s d"], index: Int[Tensor, "b s t"]) -> Float[Tensor, "b h s t"]:
        """Return q·a for every pair, selected from q·a for each vector, so that there is no s × t × d tensor."""
        per_vector = einsum(q, self.keys.weight, "b h s d, r d -> b h s r")
        return per_vector.gather(-1, index[:, None].expand(-1, q.shape[1], -1, -1))

    def results(
        self, weights: Float[Tensor, "b h s t"], index: Int[Tensor, "b s t"]
    ) -> Float[Tensor, "b h s d"] | float:
        """Return the value vectors' part of the result. The weights are first summed for each vector."""
        if self.values is None:
            return 0.0
        vectors = self.values.weight
        per_vector = weights.new_zeros(*weights.shape[:3], vectors.shape[0])
        per_vector = per_vector.scatter_add(-1, index[:, None].expand_as(weights), weights)
        return einsum(per_vector, vectors, "b h s r, r d -> b h s d")
