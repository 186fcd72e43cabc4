"""One pass through a model: what its layers share while it lasts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.nn.rotary import Rotary, RotaryConfig
from lmcourse.nn.sight import Sight


@runtime_checkable
class KeyValueStore(Protocol):
    """Keys and values of earlier tokens, kept between passes (see `lmcourse.inference.cache`)."""

    def begin(
        self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b s"] | None
    ) -> tuple[Int[Tensor, "b s"], bool]:
        """A pass begins: where its tokens stand (by default behind those before), and whether no row is padded."""
        ...

    def append(
        self, layer: int, k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
    ) -> tuple[Float[Tensor, "b kv t d"], Float[Tensor, "b kv t d"], Int[Tensor, "b t"]]:
        """Store a layer's new tokens; return all keys, values and positions that they may see."""
        ...


@dataclass
class Pass:
    """What all layers share while a batch goes through them once.

    Attributes:
        positions: of the tokens; EMPTY marks padding.
        plain: whether they count up alike in every row, without padding, so that causal attention needs no mask.
        prefix: per sequence, how many tokens at its start see each other.
        position_bias: a module that gives the bias of every pair of positions, or None.
        store: keys and values of earlier passes.
    """

    positions: Int[Tensor, "b s"]
    plain: bool = True
    prefix: Int[Tensor, " b"] | None = None
    position_bias: nn.Module | None = None
    store: KeyValueStore | None = None
    _masks: dict[tuple[Sight, int], tuple[Tensor, Tensor | None]] = field(default_factory=dict)
    _turns: dict[tuple[RotaryConfig, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def places(self) -> Int[Tensor, "b_or_1 s"]:
        """The positions, in a single row if all rows are alike: what is computed from them is computed once."""
        return self.positions[:1] if self.plain else self.positions

    def turns(self, rotary: Rotary) -> tuple[Float[Tensor, "b_or_1 1 s width"], Float[Tensor, "b_or_1 1 s width"]]:
        """How far the tokens are turned: computed once for all layers that turn alike."""
        name = (rotary.config, rotary.width)
        if name not in self._turns:
            self._turns[name] = rotary.turns(self.places)
        return self._turns[name]

    def mask(
        self, sight: Sight, keys: Int[Tensor, "b t"]
    ) -> tuple[Bool[Tensor, "b s t"], Float[Tensor, "b h s t"] | None]:
        """Which keys are visible, and their bias: built once for all layers that see alike."""
        name = (sight, keys.shape[1])
        if name not in self._masks:
            bias = self.position_bias(self.positions, keys) if self.position_bias is not None else None
            self._masks[name] = sight.visible(self.positions, keys, self.prefix), bias
        return self._masks[name]

    def prepare(self, sights: Iterable[Sight]) -> None:
        """Compute learned biases now and not in the first layer that asks. Then a block is the same when it is computed
        a second time, for its backward pass (activation checkpointing)."""
        if self.position_bias is not None and self.store is None:
            for sight in sights:
                self.mask(sight, self.positions)

    def mask_or_causal(
        self, sight: Sight, keys: Int[Tensor, "b t"]
    ) -> tuple[Bool[Tensor, "b s t"] | None, Float[Tensor, "b h s t"] | None, bool]:
        """The same, and whether attention is plainly causal instead. No mask is built where none is needed: for a text
        read from its start, and for a single new token, which sees all that the store returns."""
        new, all_keys = self.positions.shape[1], keys.shape[1]
        if self.plain and self.position_bias is None and self.prefix is None:
            if new == 1 and not sight.sparse:
                return None, None, False
            if new == all_keys and sight.is_causal_within(new):
                return None, None, True
        return *self.mask(sight, keys), False
