"""State that all layers share during one forward pass: positions, masks, the KV cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.rotary import Rotary, RotaryConfig


@runtime_checkable
class KVCache(Protocol):
    """Keys and values of earlier tokens, kept between forward passes (see `lmcourse.inference.cache`)."""

    def begin(
        self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b s"] | None
    ) -> tuple[Int[Tensor, "b s"], bool]:
        """Begin a forward pass; return the tokens' positions (by default after earlier ones), and `unpadded`."""

    def append(
        self, layer: int, k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
    ) -> tuple[Float[Tensor, "b kv t d"], Float[Tensor, "b kv t d"], Int[Tensor, "b t"]]:
        """Store a layer's new keys and values; return all keys, values and positions that the new tokens may see."""


@dataclass
class ForwardContext:
    """State that all layers share during one forward pass of a batch.

    Attributes:
        positions: the positions of the tokens; PADDING_POSITION marks padding.
        unpadded: whether the positions count up in the same way in every row, without padding. Then causal attention
            needs no mask.
        prefix_lengths: for each sequence, the number of tokens at its start that see each other (Raffel et al., 2020,
            prefix LM).
        position_bias: a module that computes the bias of every pair of positions, or None.
        kv_cache: keys and values of earlier passes, or None.
        keeps_values: whether the first layer's values are kept for the other layers (value residual).
    """

    positions: Int[Tensor, "b s"]
    unpadded: bool = True
    prefix_lengths: Int[Tensor, " b"] | None = None
    position_bias: nn.Module | None = None
    kv_cache: KVCache | None = None
    keeps_values: bool = False
    _first_values: Tensor | None = None
    _masks: dict[tuple[AttentionPattern, int], tuple[Tensor, Tensor | None]] = field(default_factory=dict)
    _cos_sin: dict[tuple[RotaryConfig, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def shared_positions(self) -> Int[Tensor, "b_or_1 s"]:
        """The positions; only one row if all rows are equal, so that what depends on it is computed once."""
        return self.positions[:1] if self.unpadded else self.positions

    def cos_sin(self, rotary: Rotary) -> tuple[Float[Tensor, "b_or_1 1 s width"], Float[Tensor, "b_or_1 1 s width"]]:
        """Return cosines and sines of a rotation at the tokens' positions, computed once for all layers."""
        key = (rotary.config, rotary.width)
        if key not in self._cos_sin:
            self._cos_sin[key] = rotary.cos_sin(self.shared_positions)
        return self._cos_sin[key]

    def mask(
        self, pattern: AttentionPattern, key_positions: Int[Tensor, "b t"]
    ) -> tuple[Bool[Tensor, "b s t"], Float[Tensor, "b h s t"] | None]:
        """Return the mask of each token's visible keys, and the bias on their scores. Both are computed once for all
        layers with this pattern, and only for one row if all rows are equal.
        """
        key = (pattern, key_positions.shape[1])
        if key not in self._masks:
            bias = self.position_bias(self.positions, key_positions) if self.position_bias is not None else None
            keys = key_positions[:1] if self.unpadded else key_positions
            visible = pattern.visible(self.shared_positions, keys, self.prefix_lengths)
            self._masks[key] = visible.expand(len(self.positions), -1, -1), bias
        return self._masks[key]

    def mix_values(
        self, v: Float[Tensor, "b kv s d"], first_share: Float[Tensor, " 1"] | None
    ) -> Float[Tensor, "b kv s d"]:
        """Return a layer's mixed values: (1 − share) v + share · (the first layer's v). If there is no share, return v.
        A cache stores mixed values, so a later pass mixes only the values of its own tokens.
        """
        if first_share is not None:
            assert self._first_values is not None, "a value residual needs a layer before it"
            return v.lerp(self._first_values, first_share.to(v.dtype))
        if self.keeps_values and self._first_values is None:
            self._first_values = v
        return v

    def prepare(self, patterns: Iterable[AttentionPattern]) -> None:
        """Compute learned biases now instead of in the first layer that needs them. Then a block gives the same result
        when the backward pass computes it again (activation checkpointing).
        """
        if self.position_bias is not None and self.kv_cache is None:
            for pattern in patterns:
                self.mask(pattern, self.positions)
