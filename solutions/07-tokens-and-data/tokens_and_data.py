# %% [markdown]
# # 07 · Tokens and data
#
# **90 min · 10 exercises · 25 points**
#
# **You will be able to**
#
# - x.
#
# **You need** x

# %%
import os
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.notebook import check, explore, hint, predict, start

start("07-tokens-and-data")

# %% [markdown]
# ### Exercise 1 · Count neighbours  (2 points · 5 min · ●)

# %% exercise="count_pairs"
def count_pairs(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    """How often each pair of neighbours stands in these words: {(1, 2): 3} for [[1, 2]] and [3]."""
    ### BEGIN SOLUTION
    counts = Counter()
    for word, many in zip(words, times, strict=True):
        for pair in pairwise(word):
            counts[pair] += many
    return {pair: count for pair, count in counts.items() if count}
    ### END SOLUTION


# %% check="count_pairs"
check(count_pairs)
### BEGIN HIDDEN TESTS
check(count_pairs, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · Merge  (2 points · 5 min · ●)

# %% exercise="merge"
def merge(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """The tokens with `new` in place of each `pair`, found from left to right."""
    ### BEGIN SOLUTION
    merged, i = [], 0
    while i < len(tokens):
        found = tuple(tokens[i : i + 2]) == pair
        merged.append(new if found else tokens[i])
        i += 2 if found else 1
    return merged
    ### END SOLUTION


# %% check="merge"
check(merge)
### BEGIN HIDDEN TESTS
check(merge, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3 · Train  (4 points · 12 min · ●●●)

# %% exercise="train_bpe"
def train_bpe(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    """The pairs to merge, in the order in which they are learned."""
    ### BEGIN SOLUTION
    texts, learned = [list(word.encode()) for word in words], []
    while len(learned) < merges:
        counts = count_pairs(texts, list(words.values()))
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        texts = [merge(text, best, 256 + len(learned)) for text in texts]
        learned.append(best)
    return learned
    ### END SOLUTION


# %% check="train_bpe"
check(train_bpe)
### BEGIN HIDDEN TESTS
check(train_bpe, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 4 · Encode  (3 points · 8 min · ●●)

# %% exercise="encode_word"
def encode_word(word: str, merges: list[tuple[int, int]]) -> list[int]:
    """The tokens of a word."""
    ### BEGIN SOLUTION
    tokens = list(word.encode())
    for new, pair in enumerate(merges, start=256):
        tokens = merge(tokens, pair, new)
    return tokens
    ### END SOLUTION


# %% check="encode_word"
check(encode_word)
### BEGIN HIDDEN TESTS
check(encode_word, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5 · Decode  (2 points · 5 min · ●●)

# %% exercise="decode"
def decode(tokens: list[int], merges: list[tuple[int, int]]) -> str:
    """The text of these tokens."""
    ### BEGIN SOLUTION
    pieces = [bytes([value]) for value in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    if any(not 0 <= token < len(pieces) for token in tokens):
        raise ValueError(f"the tokens go from 0 to {len(pieces) - 1}")
    return b"".join(pieces[token] for token in tokens).decode(errors="replace")
    ### END SOLUTION


# %% check="decode"
check(decode)
### BEGIN HIDDEN TESTS
check(decode, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6 · What a language pays  (1 point · 3 min · ●)

# %% exercise="relative_price"
def relative_price(tokens: dict[str, int], base: str) -> dict[str, float]:
    """How many times the price of `base` each language pays for the same text."""
    ### BEGIN SOLUTION
    return {language: count / tokens[base] for language, count in tokens.items()}
    ### END SOLUTION


# %% check="relative_price"
check(relative_price)
### BEGIN HIDDEN TESTS
check(relative_price, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 7 · Windows  (3 points · 7 min · ●●)

# %% exercise="batch_at"
def batch_at(
    tokens: Int[Tensor, "n"], starts: list[int], length: int
) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """Inputs and targets of the windows that begin at these places, as int64."""
    ### BEGIN SOLUTION
    windows = torch.empty(len(starts), length + 1, dtype=torch.int64)
    for row, start in enumerate(starts):
        if not 0 <= start < len(tokens) - length:
            raise ValueError(f"no window of {length} and its last target begins at {start}")
        windows[row] = tokens[start : start + length + 1]
    return windows[:, :-1], windows[:, 1:]
    ### END SOLUTION


# %% check="batch_at"
check(batch_at)
### BEGIN HIDDEN TESTS
check(batch_at, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8 · Read from disk  (3 points · 8 min · ●●)

# %% exercise="read_tokens"
def read_tokens(path: str, start: int, count: int, bytes_each: int) -> Int[Tensor, "count"]:
    """`count` tokens of a raw file, from token number `start` on."""
    ### BEGIN SOLUTION
    held = os.path.getsize(path) // bytes_each
    if bytes_each not in (2, 4) or not 0 <= start <= start + count <= held:
        raise ValueError(f"the file has {held} tokens of {bytes_each} bytes")
    text = np.memmap(path, dtype=f"<u{bytes_each}", mode="r")
    return torch.from_numpy(text[start : start + count].astype(np.int64))
    ### END SOLUTION


# %% check="read_tokens"
check(read_tokens)
### BEGIN HIDDEN TESTS
check(read_tokens, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 9 · One batch ahead  (3 points · 8 min · ●●)

# %% exercise="train_ahead"
def train_ahead(
    loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], None]
) -> None:
    """Train on the copy of every batch; the next copy is ordered before."""
    ### BEGIN SOLUTION
    waiting = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) > 1:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)
    ### END SOLUTION


# %% check="train_ahead"
check(train_ahead)
### BEGIN HIDDEN TESTS
check(train_ahead, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 10 · Luck of your own  (2 points · 5 min · ●)

# %% exercise="own_numbers"
def own_numbers(seed: int, count: int) -> Float[Tensor, "count"]:
    """`count` uniform numbers that depend on the seed alone."""
    ### BEGIN SOLUTION
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))
    ### END SOLUTION


# %% check="own_numbers"
check(own_numbers)
### BEGIN HIDDEN TESTS
check(own_numbers, hidden=True)
### END HIDDEN TESTS
