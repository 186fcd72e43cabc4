"""Number of (query, key) pairs in attention: all that a kernel is given, or those that the mask lets through.

Attention's FLOPs are 4 · d_head per head and pair. Which pairs to count is the one choice in all of FLOP counting:

- all pairs that a kernel is given, also those that the mask then hides. Dense kernels multiply them, torch's counter
  counts them, and papers' 12·L·d·T per token means them;
- the pairs that the mask lets through: with causal attention about half. Kernels that skip blocks of hidden pairs do
  nearly this little (Dao, 2023, FlashAttention-2, §3.1).
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from lmcourse.nn.attention_pattern import AttentionPattern

Pairs = Literal["all", "visible"]


@cache
def count_pairs(pattern: AttentionPattern, seq_len: int, past: int = 0, pairs: Pairs = "all") -> int:
    """Pairs of `seq_len` new queries and the keys that they meet, per head and sequence.

    Args:
        pattern: who may see whom.
        seq_len: new tokens.
        past: tokens before them, which lie in the KV cache.
        pairs: "all" that attention is given, or the "visible" ones.
    """
    if pairs == "all":
        return seq_len * num_key_slots(pattern, seq_len, past)
    return sum(num_visible_keys(pattern, query, past + seq_len) for query in range(past, past + seq_len))


def num_key_slots(pattern: AttentionPattern, seq_len: int, past: int = 0) -> int:
    """How many keys attention is given for `seq_len` new tokens.

    Without a past, the new ones. With one, what `lmcourse.inference.cache` returns: every token, but of a layer with a
    window or chunk only its slots. To a single token it shows the slots in use, to several all of them, and the new
    tokens behind.
    """
    if past == 0 or pattern.span is None:
        return past + seq_len
    if seq_len > 1:
        return pattern.span + seq_len
    return past % pattern.span + 1 if pattern.kind == "chunk" else min(past + 1, pattern.span)


def num_visible_keys(pattern: AttentionPattern, query: int, seq_len: int) -> int:
    """How many keys the query at a position sees in a text of `seq_len` tokens: itself, earlier ones, and, if attention
    is not causal, later ones."""
    return _back(pattern, query) + (0 if pattern.causal else _ahead(pattern, query, seq_len))


def _back(pattern: AttentionPattern, query: int) -> int:
    if pattern.size is None:
        return query + 1
    near, blocks, place = min(query + 1, pattern.size), query // pattern.size, query % pattern.size + 1
    return {"window": near, "chunk": place, "strided": near + blocks, "fixed": place + blocks}[pattern.kind]


def _ahead(pattern: AttentionPattern, query: int, seq_len: int) -> int:
    left = seq_len - 1 - query
    if pattern.size is None:
        return left
    near = min(left, pattern.size - 1)
    in_block = min(left, pattern.size - 1 - query % pattern.size)
    ends_of_blocks = max(0, seq_len // pattern.size - query // pattern.size - 1)
    return {
        "window": near,
        "chunk": in_block,
        "strided": near + left // pattern.size,
        "fixed": in_block + ends_of_blocks,
    }[pattern.kind]
