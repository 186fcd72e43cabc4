"""A cache in which only numbers change, never a shape: what a compiled decoding step needs.

`lmcourse.inference.cache.Cache` shows the model exactly the tokens that are there, one more in every step. A compiler
makes a program for fixed shapes, so here every step sees the whole memory. Slots that are still empty have the position
PADDING_POSITION, and the masks hide them. Python counts nothing, either: which slot is next is a tensor.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor


class Shelf:
    """Where tokens lie in the memory of layers that keep alike.

    Args:
        keys: the position of what lies in each slot.
        next: the column behind all that was read; changed in place.
        ring: whether the token at position p lies in slot p mod width, or just in the next column.
    """

    def __init__(self, keys: Int[Tensor, "b w"], next: Int[Tensor, "b 1"], *, ring: bool) -> None:
        self.keys, self.next, self.ring = keys, next, ring
        self.slot = next

    def begin(self, positions: Int[Tensor, "b 1"]) -> None:
        """Find the slot of a new token in every row."""
        self.slot = positions % self.keys.shape[1] if self.ring else self.next.clone()
        self.keys.scatter_(1, self.slot, positions)
        self.next.add_(1)

    def write(self, memory: Float[Tensor, "b kv w d"], new: Float[Tensor, "b kv 1 d"]) -> None:
        """Put the new token's keys or values into their slot."""
        memory.scatter_(2, self.slot[:, None, :, None].expand(new.shape), new)


class SettledCache:
    """The memory of a batch that goes on by one token at a time. `Cache.settle` makes it.

    Args:
        memory: per layer, keys and values.
        shelves: per layer, where they lie; layers that keep alike share one.
        next: every row's next position.
    """

    def __init__(self, memory: list[tuple[Tensor, Tensor]], shelves: list[Shelf], next: Int[Tensor, "b 1"]) -> None:
        self._memory, self._shelves, self._next = memory, shelves, next.clone()
        self._once = list({id(shelf): shelf for shelf in shelves}.values())

    def begin(
        self, tokens: Int[Tensor, "b 1"], positions: Int[Tensor, "b 1"] | None = None
    ) -> tuple[Int[Tensor, "b 1"], bool]:
        """Make room for one token per row; returns where they stand, and that masks are needed.

        Raises:
            ValueError: more than one token, or positions of the caller's.
        """
        if tokens.shape[1] != 1 or positions is not None:
            raise ValueError("a settled cache goes on by one token at a time, each behind the one before")
        at = self._next.clone()
        for shelf in self._once:
            shelf.begin(at)
        self._next.add_(1)
        return at, False

    def append(
        self, layer: int, k: Float[Tensor, "b kv 1 d"], v: Float[Tensor, "b kv 1 d"]
    ) -> tuple[Float[Tensor, "b kv w d"], Float[Tensor, "b kv w d"], Int[Tensor, "b w"]]:
        """Store a layer's new keys and values.

        Returns:
            all keys and values that there is memory for, and their positions: PADDING_POSITION where none is yet.
        """
        shelf, (keys, values) = self._shelves[layer], self._memory[layer]
        shelf.write(keys, k)
        shelf.write(values, v)
        return keys, values, shelf.keys
