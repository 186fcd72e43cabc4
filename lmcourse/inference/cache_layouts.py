"""KV-cache layouts: assign each token a slot in a layer's memory.

A layer that can look back without limit keeps every token, and new tokens follow the old ones (`GrowingBuffer`). A
layer with a window or a chunk of w tokens needs only the last w: the token at position p gets slot p mod w, where it
overwrites the token that has just left the window (`RingBuffer`). The order in memory does not matter for attention,
because its masks depend only on positions (see `lmcourse.nn.attention_pattern`); so these classes store the position of
the token in each slot.

Layers with the same attention pattern share one layout, so slots are assigned once per pass, not once per layer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.static_cache import StaticLayout
from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern

INITIAL_WIDTH = 64
"""Initial size in tokens of a `GrowingBuffer` without a capacity; the size doubles when it is full."""


class CacheLayout(ABC):
    """A layer's cache layout: the slot of each token.

    Attributes:
        width: the number of slots for each text.
        key_positions: the positions of the keys that the tokens of this pass may see.
        ring: whether the token at position p gets slot p mod width; otherwise it gets the next free slot.
    """

    ring: bool

    def __init__(self, width: int) -> None:
        self.width = width
        self.key_positions: Int[Tensor, "b t"] = torch.empty(0, 0, dtype=torch.long)
        self._positions = self.key_positions

    @abstractmethod
    def begin(self, positions: Int[Tensor, "b s"], start: int | None, *, padded: bool) -> None:
        """Assign a slot to every token of a forward pass.

        Args:
            positions: the tokens' positions in their texts; PADDING_POSITION marks padding.
            start: the first position if all rows have the same positions, without padding; otherwise None.
            padded: whether there may be padding; otherwise positions count up in every row.
        """

    @abstractmethod
    def write(self, memory: Float[Tensor, "b kv w d"], new: Float[Tensor, "b kv s d"]) -> Float[Tensor, "b kv t d"]:
        """Store the keys or values of this pass; return the keys or values at `key_positions`."""

    def to_static(self, tokens: int) -> StaticLayout:
        """Return this layout for a `StaticCache`, after `tokens` columns were read."""
        return StaticLayout(self._positions.clone(), torch.full_like(self._positions[:, :1], tokens), ring=self.ring)

    def select(self, rows: Int[Tensor, " n"]) -> None:
        """Keep these rows of the batch, in this order."""
        self._positions = self._positions[rows]


class GrowingBuffer(CacheLayout):
    """A layout that keeps all tokens and grows. Padding also takes a slot, with PADDING_POSITION.

    Args:
        capacity: the number of slots; None starts with INITIAL_WIDTH and doubles it when needed.
    """

    ring = False

    def __init__(self, capacity: int | None) -> None:
        super().__init__(capacity or INITIAL_WIDTH)
        self.length = 0
        self._new = slice(0, 0)

    def begin(self, positions: Int[Tensor, "b s"], start: int | None, *, padded: bool) -> None:
        """Assign a slot to every token of a forward pass."""
        rows, count = positions.shape
        self._new = slice(self.length, self.length + count)
        self.length += count
        while self.width < self.length:
            self.width *= 2
        if self._new.start == 0:
            self._positions = positions.new_full((rows, 0), PADDING_POSITION)
        if self._positions.shape[1] < self.width:
            unused = positions.new_full((rows, self.width - self._positions.shape[1]), PADDING_POSITION)
            self._positions = torch.cat([self._positions, unused], dim=1)
        self._positions[:, self._new] = positions
        self.key_positions = self._positions[:, : self.length]

    def write(self, memory: Float[Tensor, "b kv w d"], new: Float[Tensor, "b kv s d"]) -> Float[Tensor, "b kv t d"]:
        """Store the keys or values of this pass."""
        memory[:, :, self._new] = new
        return memory[:, :, : self.length]


class RingBuffer(CacheLayout):
    """A ring buffer of the last tokens that a query can see (sliding windows). Padding is not stored.

    Args:
        pattern: the attention pattern of the layer, which must have a limited span.
        capacity: the length of the longest text in tokens, or None.
    """

    ring = True

    def __init__(self, pattern: AttentionPattern, capacity: int | None) -> None:
        assert pattern.span is not None, "only a limited window has a ring buffer"
        super().__init__(pattern.span if capacity is None else min(pattern.span, capacity))
        self.chunked = pattern.kind == "chunk"
        self._one: int | None = None  # the slot of a single token, the same in every row
        none = self.key_positions
        self._many = (none, none, none)  # for several tokens: row, slot and column of each that is stored
        self._first = True  # True if nothing was stored before this pass

    def begin(self, positions: Int[Tensor, "b s"], start: int | None, *, padded: bool) -> None:
        """Assign a slot to every token of a forward pass."""
        self._first = self._positions.numel() == 0
        if self._first:
            self._positions = positions.new_full((positions.shape[0], self.width), PADDING_POSITION)
        if positions.shape[1] == 1 and start is not None:
            self._begin_one(positions, start)
        else:
            self._begin_many(positions, *self._find_stored(positions, padded))

    def _find_stored(self, positions: Int[Tensor, "b s"], padded: bool) -> tuple[Tensor, Tensor]:
        """Return row and column of every token in a pass that is stored: the newest `width` tokens of each row."""
        rows, count = positions.shape
        if padded:
            newest = positions.amax(dim=1, keepdim=True)
            row, column = ((positions > newest - self.width) & (positions != PADDING_POSITION)).nonzero(as_tuple=True)
            return row, column
        # Without padding they are the last columns of every row. Searching for them would wait for the device.
        kept, device = min(count, self.width), positions.device
        column = torch.arange(count - kept, count, device=device).repeat(rows)
        return torch.arange(rows, device=device).repeat_interleave(kept), column

    def _begin_one(self, positions: Int[Tensor, "b 1"], start: int) -> None:
        """Assign slots in a decoding step. Only slots that the token sees are returned, so no mask is needed."""
        self._one = start % self.width
        self._positions[:, self._one] = positions[:, 0]
        seen = self._one + 1 if self.chunked else min(start + 1, self.width)
        self.key_positions = self._positions[:, :seen]

    def _begin_many(self, positions: Int[Tensor, "b s"], rows: Int[Tensor, " n"], columns: Int[Tensor, " n"]) -> None:
        """Assign slots for several tokens, perhaps more than there are slots. A query can see the stored tokens and all
        new ones; only the last tokens are stored.
        """
        kept = positions[rows, columns]
        self._one, self._many = None, (rows, kept % self.width, columns)
        self.key_positions = positions if self._first else torch.cat([self._positions, positions], dim=1)
        self._positions[rows, kept % self.width] = kept

    def write(self, memory: Float[Tensor, "b kv w d"], new: Float[Tensor, "b kv s d"]) -> Float[Tensor, "b kv t d"]:
        """Store the keys or values of this pass."""
        if self._one is not None:
            memory[:, :, self._one] = new[:, :, 0]
            return memory[:, :, : self.key_positions.shape[1]]
        rows, slots, columns = self._many
        seen = new if self._first else torch.cat([memory, new], dim=2)
        memory[rows, :, slots] = new[rows, :, columns]
        return seen
