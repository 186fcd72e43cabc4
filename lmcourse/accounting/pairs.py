"""How many pairs of a query and a key attention works on: what it is given, and what it may use.

Attention's FLOPs are 4 · d_head per head and pair. Which pairs to count is the one choice in all of FLOP counting:

- all pairs that a kernel is given, also those that the mask then hides. Dense kernels multiply them, torch's counter
  counts them, and papers' 12·L·d·T per token means them;
- the pairs that the mask lets through: with causal attention about half. Kernels that skip blocks of hidden pairs do
  nearly this little (Dao, 2023, FlashAttention-2, §3.1).
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from lmcourse.nn.sight import Sight

Pairs = Literal["all", "visible"]


@cache
def count_pairs(sight: Sight, length: int, past: int = 0, pairs: Pairs = "all") -> int:
    """Pairs of `length` new queries and the keys that they meet, per head and sequence.

    Args:
        sight: who may see whom.
        length: new tokens.
        past: tokens before them, which lie in the KV cache.
        pairs: "all" that attention is given, or the "visible" ones.
    """
    if pairs == "all":
        return length * given_keys(sight, length, past)
    return sum(seen_keys(sight, query, past + length) for query in range(past, past + length))


def given_keys(sight: Sight, length: int, past: int = 0) -> int:
    """How many keys attention is given for `length` new tokens.

    Without a past, the new ones. With one, what `lmcourse.inference.cache` returns: every token, but of a layer with a
    window or chunk only its slots. To a single token it shows the slots in use, to several all of them, and the new
    tokens behind.
    """
    if past == 0 or sight.span is None:
        return past + length
    if length > 1:
        return sight.span + length
    return past % sight.span + 1 if sight.kind == "chunk" else min(past + 1, sight.span)


def seen_keys(sight: Sight, query: int, length: int) -> int:
    """How many keys the query at a position sees in a text of `length` tokens: itself, earlier ones, and, if attention
    is not causal, later ones."""
    return _back(sight, query) + (0 if sight.causal else _ahead(sight, query, length))


def _back(sight: Sight, query: int) -> int:
    if sight.size is None:
        return query + 1
    near, blocks, place = min(query + 1, sight.size), query // sight.size, query % sight.size + 1
    return {"window": near, "chunk": place, "strided": near + blocks, "fixed": place + blocks}[sight.kind]


def _ahead(sight: Sight, query: int, length: int) -> int:
    left = length - 1 - query
    if sight.size is None:
        return left
    near = min(left, sight.size - 1)
    in_block = min(left, sight.size - 1 - query % sight.size)
    ends_of_blocks = max(0, length // sight.size - query // sight.size - 1)
    return {
        "window": near,
        "chunk": in_block,
        "strided": near + left // sight.size,
        "fixed": in_block + ends_of_blocks,
    }[sight.kind]
