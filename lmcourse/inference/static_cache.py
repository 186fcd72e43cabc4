"""A static KV cache: its tensors keep their shapes and addresses, as a compiled decoding step requires.

`lmcourse.inference.cache.Cache` shows the model only the stored tokens, one more in every step. A compiled program has
fixed shapes, so here every step sees the whole memory. Empty slots have the position PADDING_POSITION, and the masks
hide them. Even the number of the next slot is a tensor, not a Python integer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


class StaticLayout:
    """A cache layout with fixed sizes: assigns each token of a layer a slot.

    Args:
        key_positions: the position of the token in each slot.
        next: the number of columns read so far; changed in place.
        ring: whether the token at position p gets slot p mod width; otherwise it gets the next column.
    """

    def __init__(self, key_positions: Int[Tensor, "b w"], next: Int[Tensor, "b 1"], *, ring: bool) -> None:
        self.key_positions, self.next, self.ring = key_positions, next, ring
        self.slot = next

    def begin(self, positions: Int[Tensor, "b 1"]) -> None:
        """Find the slot of a new token in every row."""
        self.slot = positions % self.key_positions.shape[1] if self.ring else self.next.clone()
        self.key_positions.scatter_(1, self.slot, positions)
        self.next.add_(1)

    def write(self, memory: Float[Tensor, "b kv w d"], new: Float[Tensor, "b kv 1 d"]) -> None:
        """Write the new token's keys or values into their slot."""
        rows = torch.arange(memory.shape[0], device=memory.device)[:, None]
        heads = torch.arange(memory.shape[1], device=memory.device)
        memory[rows, heads, self.slot] = new[:, :, 0]


class StaticCache:
    """The KV cache of a batch that continues one token at a time. `Cache.to_static` makes it.

    Args:
        memory: keys and values of each layer.
        layouts: the layout of each layer; layers with the same pattern share one.
        next: the next position of every row.
    """

    def __init__(
        self, memory: list[tuple[Tensor, Tensor]], layouts: list[StaticLayout], next: Int[Tensor, "b 1"]
    ) -> None:
        self._memory, self._layouts, self._next = memory, layouts, next.clone()
        self._distinct_layouts = list({id(layout): layout for layout in layouts}.values())

    def tensors(self) -> list[Tensor]:
        """Return all tensors that a step reads and changes."""
        positions = [x for layout in self._distinct_layouts for x in (layout.key_positions, layout.next)]
        return [self._next, *positions, *(x for pair in self._memory for x in pair)]

    def begin(
        self, tokens: Int[Tensor, "b 1"], positions: Int[Tensor, "b 1"] | None = None
    ) -> tuple[Int[Tensor, "b 1"], bool]:
        """Prepare a pass with one token per row, without given positions; otherwise ValueError is raised.

        Returns the tokens' positions, and False: masks are needed, because a step sees unused slots.
        """
        if tokens.shape[1] != 1 or positions is not None:
            raise ValueError("a static cache takes one token at a time, directly after the previous one")
        at = self._next.clone()
        for layout in self._distinct_layouts:
            layout.begin(at)
        self._next.add_(1)
        return at, False

    def append(
        self, layer: int, k: Float[Tensor, "b kv 1 d"], v: Float[Tensor, "b kv 1 d"]
    ) -> tuple[Float[Tensor, "b kv w d"], Float[Tensor, "b kv w d"], Int[Tensor, "b w"]]:
        """Store a layer's new keys and values; return those in all slots, empty ones too, and their positions."""
        layout, (keys, values) = self._layouts[layer], self._memory[layer]
        layout.write(keys, k)
        layout.write(values, v)
        return keys, values, layout.key_positions
