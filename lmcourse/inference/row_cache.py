"""A KV cache for several texts of different lengths, which begin and end at different times."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.nn.attention_pattern import PADDING_POSITION


class RowCache:
    """Keys and values of several texts: row `i` holds `lengths[i]` tokens. Pass it to the model as `kv_cache`.

    The first pass decides how many rows there are. A pass adds all of its tokens to each row, padding included: so
    `truncate` afterwards. Row `i` of every pass belongs to row `i` of the cache.

    Args:
        layers: the number of layers of the model.
        capacity: the most tokens that a row can hold.
    """

    def __init__(self, layers: int, capacity: int) -> None:
        self.capacity = capacity
        self.lengths: list[int] = []
        self._memory: list[Tensor | None] = [None] * layers

    def join(self, other: RowCache) -> None:
        """Add the rows of another cache, with the same layers and capacity, after the rows of this one."""
        if len(other._memory) != len(self._memory) or other.capacity != self.capacity:
            raise ValueError("only caches with the same layers and capacity can be joined")
        self._memory = [
            mine if theirs is None else theirs if mine is None else torch.cat([mine, theirs], dim=1)
            for mine, theirs in zip(self._memory, other._memory, strict=True)
        ]
        self.lengths = [*self.lengths, *other.lengths]

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order, and drop the others."""
        if list(rows) == list(range(len(self.lengths))):
            return  # nothing to copy
        self.lengths = [self.lengths[row] for row in rows]
        self._memory = [memory[:, list(rows)] if rows and memory is not None else None for memory in self._memory]

    def truncate(self, lengths: Sequence[int]) -> None:
        """Keep the first `lengths[i]` tokens of row i.

        Raises:
            ValueError: there is not one length for each row, or a row does not hold that many tokens.
        """
        if len(lengths) != len(self.lengths) or not all(
            0 <= n <= m for n, m in zip(lengths, self.lengths, strict=True)
        ):
            raise ValueError(f"rows of {self.lengths} tokens cannot keep {list(lengths)}")
        self.lengths = list(lengths)

    def begin(self, tokens: Int[Tensor, "b s"], positions: object = None) -> tuple[Int[Tensor, "b s"], bool]:
        """Return the positions of the new tokens: in each row, after the tokens that it holds."""
        rows, new = tokens.shape
        before = self.lengths or [0] * rows
        if rows != len(before):
            raise ValueError(f"a pass of {rows} rows for a cache of {len(before)}")
        if max(before) + new > self.capacity:
            raise ValueError(
                f"the longest row has {max(before)} tokens, and {new} more do not fit into {self.capacity} places; "
                "`truncate` forgets padding"
            )
        first = torch.tensor(before)[:, None]
        places = torch.arange(max(before) + new)
        self._at = first + torch.arange(new)
        self._keys = torch.where(places < first + new, places, PADDING_POSITION)
        self.lengths = [length + new for length in before]
        return self._at, False

    def append(
        self, layer: int, k: Float[Tensor, "b h s d"], v: Float[Tensor, "b h s d"]
    ) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t d"], Int[Tensor, "b t"]]:
        """Store a layer's new keys and values; return all of it, and the positions of the keys."""
        memory = self._memory[layer]
        if memory is None:
            rows, heads, _, width = k.shape
            memory = self._memory[layer] = k.new_zeros(2, rows, heads, self.capacity, width)
        at, top = self._at[:, None, :, None].expand(k.shape), self._keys.shape[1]
        memory[0].scatter_(2, at, k.detach())
        memory[1].scatter_(2, at, v.detach())
        return memory[0, :, :, :top], memory[1, :, :, :top], self._keys
