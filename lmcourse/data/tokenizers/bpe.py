"""Byte pair encoding (BPE) in plain Python: merge the commonest pair of neighbours into a new token, again and again.

Sennrich, Haddow and Birch (2016) merge characters inside words; beginning with bytes instead (Radford et al., 2019)
makes every text readable, in 256 tokens at worst. Tokens 0 to 255 are the bytes, token 256 + i is what merge i made.

This file is to be read; `fast_bpe` learns the same merges and gives the same tokens, much faster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Self

from lmcourse.data.tokenizers.bytes import BYTES
from lmcourse.data.tokenizers.lookup import look_up
from lmcourse.data.tokenizers.pre_tokenizer import split_words

Pair = tuple[int, int]

MIN_PAIR_COUNT = 2
"""How often a pair must have been seen to be merged: a token for what was seen once shortens nothing but that place."""


class BPETokenizer:
    """Byte-level BPE tokenizer with a list of merges.

    Args:
        merges: pairs of tokens, in the order in which they were learned; merge i makes token 256 + i.

    Attributes:
        vocab_size: 256 + the number of merges.
        token_bytes: the bytes of every token.

    Raises:
        ValueError: a merge of tokens that do not exist yet, or two that make the same bytes, as training never does.
    """

    def __init__(self, merges: Sequence[Sequence[int]]) -> None:
        self.merges: list[Pair] = [(left, right) for left, right in merges]
        self.token_bytes = list(BYTES)
        for pair in self.merges:
            self.token_bytes.append(b"".join(look_up(self.token_bytes, pair)))
        self.vocab_size = len(self.token_bytes)
        if len(set(self.token_bytes)) < self.vocab_size:
            raise ValueError("two merges make the same bytes")
        self._made_by = {pair: token for token, pair in enumerate(self.merges, start=len(BYTES))}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Learn from texts.

        Args:
            vocab_size: how many tokens to make, at most: there are fewer if no pair is left that was seen twice.

        Raises:
            ValueError: a vocabulary below 256, or half a character (a lone surrogate) in a text.
        """
        if vocab_size < len(BYTES):
            raise ValueError(f"a vocabulary of {vocab_size}: the bytes alone are {len(BYTES)} tokens")
        return cls(cls._learn(texts, vocab_size - len(BYTES)))

    @staticmethod
    def _learn(texts: Iterable[str], merges: int) -> list[Pair]:
        return learn_merges(texts, merges)

    def encode(self, text: str) -> list[int]:
        """The text's tokens, word by word.

        Raises:
            ValueError: the text has half a character (a lone surrogate).
        """
        words = split_words(text)
        tokens_of = {word: self._encode_word(word) for word in {*words}}
        return [token for word in words for token in tokens_of[word]]

    def _encode_word(self, word: str) -> list[int]:
        """Apply, among the merges that fit, the one learned first; until none fits."""
        tokens = list(word.encode())
        while known := [pair for pair in pairwise(tokens) if pair in self._made_by]:
            first = min(known, key=self._made_by.__getitem__)
            tokens = merge(tokens, first, self._made_by[first])
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text; U+FFFD for what is no UTF-8, such as half of a character's tokens.

        Raises:
            ValueError: there is no such token.
        """
        return b"".join(look_up(self.token_bytes, tokens)).decode(errors="replace")

    def to_json(self) -> dict[str, Any]:
        """The merges; the tokens follow from them."""
        return {"kind": "bpe", "merges": [list(pair) for pair in self.merges]}


def learn_merges(texts: Iterable[str], merges: int) -> list[Pair]:
    """The pairs to merge, best first.

    The commonest pair is merged; of equally common pairs the one with the smaller left token, then the smaller right
    token. Overlapping pairs all count: "aaa" has two pairs "aa".

    Args:
        merges: how many, at most.
    """
    found: list[Pair] = []
    counts = PairCounts(texts)
    while len(found) < merges and (pair := counts.commonest()) is not None:
        counts.merge(pair, len(BYTES) + len(found))
        found.append(pair)
    return found


class PairCounts:
    """How often each pair of tokens stands in the words of some texts.

    A word that occurs a thousand times is kept once, and a merge looks only at the words that have the pair.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        times = Counter(word for text in texts for word in split_words(text))
        self.words = [list(word.encode()) for word in times]
        self.times = list(times.values())
        self.counts: Counter[Pair] = Counter()
        self.where: defaultdict[Pair, set[int]] = defaultdict(set)
        for index in range(len(self.words)):
            self._add(index)

    def commonest(self) -> Pair | None:
        """The pair to merge next; None if all that are left are too rare."""
        most = max(self.counts.values(), default=0)
        return min(pair for pair, count in self.counts.items() if count == most) if most >= MIN_PAIR_COUNT else None

    def merge(self, pair: Pair, token: int) -> None:
        """Put a token in place of the pair in all words."""
        for index in self.where.pop(pair):
            self._add(index, sign=-1)
            self.words[index] = merge(self.words[index], pair, token)
            self._add(index)

    def _add(self, index: int, sign: int = 1) -> None:
        for pair in pairwise(self.words[index]):
            self.counts[pair] += sign * self.times[index]
            self.where[pair].add(index)
            if not self.counts[pair]:
                del self.counts[pair]


def merge(tokens: Sequence[int], pair: Pair, token: int) -> list[int]:
    """The tokens with `token` in place of each `pair`, found from left to right."""
    merged: list[int] = []
    for each in tokens:
        if merged and (merged[-1], each) == pair:
            merged[-1] = token
        else:
            merged.append(each)
    return merged
