"""A static KV cache: its tensors keep their shapes and addresses, as a compiled decoding step requires.

`lmcourse.inference.cache.Cache` shows the model exactly the tokens that are there, one more in every step. A compiler
makes a program for fixed shapes, so here every step sees the whole memory. Slots that are still empty have the position
PADDING_POSITION, and the masks hide them. Python counts nothing, either: which slot is next is a tensor.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


class StaticLayout:
    """A cache layout whose sizes are all fixed: the slot of each token of a layer.

    Args:
        key_positions: the position of what each slot holds.
        next: the column behind all that was read; changed in place.
        ring: whether the token at position p has slot p mod width, or just the next column.
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
        memory: per layer, keys and values.
        layouts: per layer, which slot each token has; layers with the same pattern share one.
        next: every row's next position.
    """

    def __init__(
        self, memory: list[tuple[Tensor, Tensor]], layouts: list[StaticLayout], next: Int[Tensor, "b 1"]
    ) -> None:
        self._memory, self._layouts, self._next = memory, layouts, next.clone()
        self._distinct_layouts = list({id(layout): layout for layout in layouts}.values())

    def tensors(self) -> list[Tensor]:
        """All tensors that a step reads and changes."""
        positions = [x for layout in self._distinct_layouts for x in (layout.key_positions, layout.next)]
        return [self._next, *positions, *(x for pair in self._memory for x in pair)]

    def begin(
        self, tokens: Int[Tensor, "b 1"], positions: Int[Tensor, "b 1"] | None = None
    ) -> tuple[Int[Tensor, "b 1"], bool]:
        """Prepare a pass with one token per row.

        Returns:
            the tokens' positions, and False: masks are needed, because unused slots are visible.

        Raises:
            ValueError: more than one token, or positions of the caller's.
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
        """Store a layer's new keys and values.

        Returns:
            all keys and values that there is memory for, and their positions: PADDING_POSITION where none is yet.
        """
        layout, (keys, values) = self._layouts[layer], self._memory[layer]
        layout.write(keys, k)
        layout.write(values, v)
        return keys, values, layout.key_positions
