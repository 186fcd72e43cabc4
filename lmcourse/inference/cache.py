"""The KV cache: keeps keys and values of earlier tokens, so that only new tokens go through the model.

A causal model's keys and values never change once they are computed, because no earlier token sees a later one. So only
the new tokens go through the model, and their queries use the keys in the cache (Shazeer, 2019, §2.4; Pope et al.,
2022). Without a cache every new token would need a pass over the whole text.

A text takes 2 (key and value) · layers · kv_heads · d_head · tokens · bytes per number; a layer with a window or chunk
stores at most that many tokens. `Cache.bytes` is the actual size of the tensors.

Texts of different lengths can share a batch: padding, on either side, has the position PADDING_POSITION, and no query
sees it. Then every row continues after its own last position.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.cache_layouts import CacheLayout, GrowingBuffer, RingBuffer
from lmcourse.inference.static_cache import StaticCache
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern


class Cache:
    """The KV cache of one batch of texts. Pass it to the model in every call:

        cache = Cache(model.config)
        logits = model(prompt, kv_cache=cache)       # prefill
        logits = model(token, kv_cache=cache)        # decode, as often as you like

    No gradient flows through the stored keys and values. If a pass fails, the cache is unusable. Raises ValueError if
    the capacity is not positive, or a layer sees later tokens, so that stored keys would have to change.

    Args:
        config: the configuration of the model, or of the decoder in an encoder–decoder.
        capacity: the length of the longest text in tokens, including padding. Memory for it is allocated in the first
            pass and never moves. If there is no capacity, the memory doubles whenever it is full.
    """

    def __init__(self, config: TransformerConfig, capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a cache needs a capacity of at least 1 token, not {capacity}")
        patterns = [layer.attention.pattern for layer in config.layers]
        for index, pattern in enumerate(patterns):
            if not pattern.causal:
                raise ValueError(f"layer {index} sees later tokens, so it cannot use a cache")
        self.capacity = capacity
        layouts: dict[AttentionPattern | None, CacheLayout] = {}
        for pattern in patterns:
            if pattern.span is None:
                layouts.setdefault(None, GrowingBuffer(self.capacity))
            else:
                layouts.setdefault(pattern, RingBuffer(pattern, self.capacity))
        self.tokens = 0
        self._layouts = list(layouts.values())
        self._layout_of = [layouts[None if pattern.span is None else pattern] for pattern in patterns]
        self._memory: list[tuple[Tensor, Tensor] | None] = [None] * len(patterns)
        self._next: Tensor | None = None  # the next position of every row; None while it is `tokens` in all rows

    def begin(
        self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b s"] | None = None
    ) -> tuple[Int[Tensor, "b s"], bool]:
        """Prepare a pass. The model calls this once, before its layers.

        Returns the tokens' positions, and whether they are the same in every row, without padding. More tokens than the
        capacity, or another number of texts, raise ValueError.
        """
        rows, count = tokens.shape
        self._check(rows, count)
        steps = torch.arange(count, device=tokens.device)
        padded, unpadded = positions is not None, positions is None and self._next is None
        if positions is None:
            first = self.tokens if self._next is None else self._next[:, None]
            positions = (first + steps).expand(rows, count)
        if not unpadded:
            last = positions.amax(dim=1) + 1
            before = self.tokens if self._next is None else self._next
            self._next = torch.where(last > PADDING_POSITION + 1, last, before)
        for layout in self._layouts:
            layout.begin(positions, self.tokens if unpadded else None, padded=padded)
        self.tokens += count
        return positions, unpadded

    def _check(self, rows: int, count: int) -> None:
        if self.capacity is not None and self.tokens + count > self.capacity:
            raise ValueError(
                f"the cache has {self.tokens} of {self.capacity} tokens, so {count} more do not "
                "fit: use a larger capacity"
            )
        if self._memory[0] is not None and self._memory[0][0].shape[0] != rows:
            raise ValueError(f"the cache holds {self._memory[0][0].shape[0]} texts, but got {rows}")

    def append(
        self, layer: int, k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
    ) -> tuple[Float[Tensor, "b kv t d"], Float[Tensor, "b kv t d"], Int[Tensor, "b t"]]:
        """Store a layer's new keys and values; return all that the new tokens may see, and their positions."""
        layout = self._layout_of[layer]
        memory = self._memory[layer] = _widen(self._memory[layer], k, layout.width)
        return layout.write(memory[0], k.detach()), layout.write(memory[1], v.detach()), layout.key_positions

    @property
    def bytes(self) -> int:
        """The size of the stored keys and values in bytes, including allocated space that is not used yet."""
        return sum(part.nbytes for pair in self._memory if pair is not None for part in pair)

    def select(self, rows: Int[Tensor, " n"]) -> None:
        """Keep these rows of the batch, in this order; a row may come more than once (beam search)."""
        for layout in self._layouts:
            layout.select(rows)
        self._memory = [pair and (pair[0][rows], pair[1][rows]) for pair in self._memory]
        self._next = None if self._next is None else self._next[rows]

    def to_static(self) -> StaticCache:
        """Return a `StaticCache` with the same memory, whose tensors keep their shapes. Do not use this cache any more.

        A cache without a capacity, whose memory would have to grow, or without a prompt raises ValueError.
        """
        memory = [pair for pair in self._memory if pair is not None]
        if self.capacity is None or len(memory) < len(self._memory):
            raise ValueError("a cache can become static only if it has a capacity and has read a prompt")
        static = {id(layout): layout.to_static(self.tokens) for layout in self._layouts}
        rows = memory[0][0].shape[0]
        first = memory[0][0].new_full((rows,), self.tokens, dtype=torch.long) if self._next is None else self._next
        return StaticCache(memory, [static[id(layout)] for layout in self._layout_of], first[:, None])


def _widen(memory: tuple[Tensor, Tensor] | None, like: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return a layer's memory, enlarged with zeros: an empty slot has weight 0, but 0 times NaN is NaN."""
    if memory is not None and memory[0].shape[2] >= width:
        return memory
    rows, heads, _, d_head = like.shape
    wider = like.new_zeros(2, rows, heads, width, d_head)
    if memory is not None:
        used = memory[0].shape[2]
        wider[0, :, :, :used], wider[1, :, :, :used] = memory
    return wider[0], wider[1]
