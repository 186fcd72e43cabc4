"""Byte pair encoding (BPE): repeatedly merge the most frequent pair of neighbours into a new token.

Sennrich, Haddow and Birch (2016) merge characters inside words; starting with bytes instead (Radford et al., 2019)
makes it possible to encode every text. Tokens 0 to 255 are the bytes; merge i makes token 256 + i.

Notebook 07 builds the simple algorithm, which goes through all words for every merge. Here a merge visits only the
places of its pair, and the next pair comes from a heap. So the work grows as n log n with the total length n of the
words, even if the text is a single word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from typing import Any, Self

from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.data.tokenizers.tokenizer import BYTES, look_up

Pair = tuple[int, int]
OnMerge = Callable[[int], None]
"""A function that is called after each merge with the number of merges so far."""

MIN_PAIR_COUNT = 2
"""Pairs that occur less often are not merged, because a token for a pair that occurs once shortens only that place."""

MAX_CACHED_WORDS = 100_000
"""The number of words that a tokenizer caches with their tokens."""

BORDER = -1
"""Marks the beginning and end of every word, and places whose token was merged into the token before it."""


class BPETokenizer:
    """Byte-level BPE tokenizer with a list of merges.

    Args:
        merges: the merged pairs of tokens, in the order in which they were learned; merge i makes token 256 + i.

    Attributes:
        vocab_size: 256 + the number of merges.
        token_bytes: the bytes of every token.

    Raises:
        ValueError: a merge uses a token that does not exist yet, or two merges make the same bytes. Training never does
            this.

    Example:
        >>> BPETokenizer([(97, 98), (256, 99)]).encode("abc abd")
        [257, 32, 256, 100]
    """

    def __init__(self, merges: Sequence[Sequence[int]]) -> None:
        self.merges: list[Pair] = [(left, right) for left, right in merges]
        self.token_bytes = list(BYTES)
        for pair in self.merges:
            self.token_bytes.append(b"".join(look_up(self.token_bytes, pair)))
        self.vocab_size = len(self.token_bytes)
        if len(set(self.token_bytes)) < self.vocab_size:
            raise ValueError("two merges produce the same bytes")
        self._made_by = {pair: token for token, pair in enumerate(self.merges, start=len(BYTES))}
        self._cache: dict[str, list[int]] = {}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, on_merge: OnMerge | None = None) -> Self:
        """Learn merges from texts.

        Raises ValueError if `vocab_size` is below 256, or a text has half a character (a lone surrogate).

        Args:
            vocab_size: largest size of the vocabulary; it is smaller if no remaining pair occurs twice.
            on_merge: called after each merge with the number of merges so far.
        """
        if vocab_size < len(BYTES):
            raise ValueError(f"vocab_size must be at least {len(BYTES)}, the bytes alone, not {vocab_size}")
        return cls(learn_merges(texts, vocab_size - len(BYTES), on_merge))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; it is encoded word by word."""
        tokens: list[int] = []
        for word in split_words(text):
            known = self._cache.get(word)
            if known is None:
                known = self._encode_word(word)
                if len(self._cache) < MAX_CACHED_WORDS:
                    self._cache[word] = known
            tokens += known
        return tokens

    def _encode_word(self, word: str) -> list[int]:
        """Apply merges until none fits: always the earliest learned merge that fits, from left to right."""
        chain = TokenChain([word])
        made_by = self._made_by
        queue = [(made_by[pair], left) for left, pair in enumerate(pairwise(chain.tokens)) if pair in made_by]
        heapify(queue)
        while queue:
            token, left = heappop(queue)
            if made_by.get(chain.pair(left)) != token:  # another merge has already used one of the two
                continue
            chain.merge(left, token)
            for at in (chain.before[left], left):
                if (found := made_by.get(chain.pair(at))) is not None:
                    heappush(queue, (found, at))
        return [token for token in chain.tokens if token != BORDER]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text; bytes that are not UTF-8, such as half of a character, become U+FFFD."""
        return b"".join(look_up(self.token_bytes, tokens)).decode(errors="replace")

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the merges, which determine all tokens."""
        return {"kind": "bpe", "merges": [list(pair) for pair in self.merges]}


def learn_merges(texts: Iterable[str], merges: int, on_merge: OnMerge | None = None) -> list[Pair]:
    """Return the pairs to merge, in order, at most `merges`.

    The most frequent pair is merged first; among equally frequent pairs, the pair with the smaller left token, then the
    smaller right token. Overlapping pairs all count: "aaa" has two pairs "aa".
    """
    found: list[Pair] = []
    counts = PairCounts(texts)
    while len(found) < merges and (pair := counts.commonest()) is not None:
        counts.merge(pair, len(BYTES) + len(found))
        found.append(pair)
        if on_merge is not None:
            on_merge(len(found))
    return found


class TokenChain:
    """The tokens of some words in a doubly linked list, so that the time of a merge does not depend on word length.

    Attributes:
        tokens: one token for each position; BORDER between words, and at positions whose token was merged into another.
        before, after: the positions of the neighbours.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.tokens = [BORDER]
        for word in words:
            self.tokens += word.encode()
            self.tokens.append(BORDER)
        self.before = list(range(-1, len(self.tokens) - 1))
        self.after = list(range(1, len(self.tokens) + 1))

    def pair(self, left: int) -> Pair:
        """Return the token at a position and the next token."""
        return self.tokens[left], self.tokens[self.after[left]]

    def merge(self, left: int, token: int) -> None:
        """Replace the token at a position and the next token by one token."""
        right = self.after[left]
        self.tokens[left], self.tokens[right] = token, BORDER
        self.after[left] = self.after[right]
        self.before[self.after[right]] = left


class PairCounts:
    """Counts of each pair of tokens in the words of some texts. A repeated word is stored only once.

    Only pairs with the newest token become more frequent. So the queue holds each pair once, with an earlier count that
    is never less than the current count.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        times = Counter(word for text in texts for word in split_words(text))
        self.chain = TokenChain(times)
        self.times = [0]
        for word, count in times.items():
            self.times += [count] * (len(word.encode()) + 1)
        self.counts: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, list[int]] = defaultdict(list)
        for left, pair in enumerate(pairwise(self.chain.tokens)):
            self._count(pair, left)
        self.queue = [(-count, pair) for pair, count in self.counts.items()]
        heapify(self.queue)

    def commonest(self) -> Pair | None:
        """Return the pair to merge next; None if all remaining pairs are too rare."""
        while self.queue:
            count, pair = self.queue[0]
            if count == -self.counts[pair]:
                return pair if -count >= MIN_PAIR_COUNT else None
            heapreplace(self.queue, (-self.counts[pair], pair))
        return None

    def merge(self, pair: Pair, token: int) -> None:
        """Replace the pair by a token in all words, from left to right."""
        chain, changed = self.chain, set()
        for left in self.places.pop(pair):
            if chain.pair(left) != pair:  # another merge has already used one of the two
                continue
            before, right = chain.before[left], chain.after[left]
            for at in (before, left, right):
                self.counts[chain.pair(at)] -= self.times[left]
            chain.merge(left, token)
            for at in (before, left):
                self._count(chain.pair(at), at)
                changed.add(chain.pair(at))
        for each in changed:
            if self.counts[each] > 0:
                heappush(self.queue, (-self.counts[each], each))

    def _count(self, pair: Pair, left: int) -> None:
        if BORDER not in pair:
            self.counts[pair] += self.times[left]
            self.places[pair].append(left)
