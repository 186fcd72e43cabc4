"""A text whose words and counts record what is looked at, for the check of `merge_counted` and for its cell.

A submission's process runs it too, which has no exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import pairwise, product
from typing import Any

Pair = tuple[int, int]
Where = dict[Pair, set[int]]

NO_MORE = "nothing but the words that hold the pair"
"""Words that a merge has to look at."""


class ReadWords(list[list[int]]):
    """A list of words that records which of them are read. `list(words)` and `words.copy()` read all of them."""

    def __init__(self, words: Iterable[list[int]]) -> None:
        super().__init__(words)
        self.read: set[int] = set()

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self))[place]
        self.read.update(places if isinstance(places, range) else [places])
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[list[int]]:
        for place, word in enumerate(super().__iter__()):
            self.read.add(place)
            yield word

    __reversed__ = Sequence.__reversed__

    def copy(self) -> list[list[int]]:
        """Return a plain list of the words, all of which are read."""
        return [*self]


class WrittenCounts(dict[Pair, int]):
    """A dict that records the pairs whose counts are written."""

    def __init__(self, counts: Mapping[Pair, int]) -> None:
        super().__init__(counts)
        self.written: set[Pair] = set()

    def __setitem__(self, pair: Pair, count: int) -> None:
        self.written.add(pair)
        super().__setitem__(pair, count)

    def __delitem__(self, pair: Pair) -> None:
        self.written.add(pair)
        super().__delitem__(pair)

    # Those of dict write without a call of the two above.
    setdefault = MutableMapping.setdefault
    popitem = MutableMapping.popitem
    update = MutableMapping.update
    clear = MutableMapping.clear

    def pop(self, pair: Pair, *default: Any) -> Any:
        """Remove a pair, and record it."""
        self.written.add(pair)
        return super().pop(pair, *default)


class CountedText:
    """Words with the counts and places of their pairs, as `merge_counted` takes them.

    Attributes:
        words: the words' tokens; how often each occurs is in `times`.
        counts: how often each pair of neighbours occurs in the text.
        where: the numbers of the words that hold each pair.
        visits: how many words the merges so far had to look at: those that held the pair.
        looks: how many words they did look at, each counted once in a merge.
        work: what the last merge looked at, in words.
    """

    def __init__(self, words: Sequence[Sequence[int]], times: Sequence[int]) -> None:
        self._words = ReadWords(map(list, words))
        self._counts = WrittenCounts({})
        self.times = [*times]
        self.where: Where = {}
        self.visits = self.looks = 0
        self.work = ""
        for number, (word, many) in enumerate(zip(words, times, strict=True)):
            for pair in pairwise(word):
                self._counts[pair] = self._counts.get(pair, 0) + many
                self.where.setdefault(pair, set()).add(number)

    @classmethod
    def of_bytes(cls, words: Mapping[str, int]) -> CountedText:
        """Begin with the bytes of words: {"low": 5}."""
        return cls([list(word.encode()) for word in words], [*words.values()])

    @property
    def words(self) -> list[list[int]]:
        """The words' tokens, without a record that they are read."""
        return [[*word] for word in list.__iter__(self._words)]

    @property
    def counts(self) -> dict[Pair, int]:
        """The count of each pair, as `merge_counted` left it."""
        return dict(self._counts)

    def merge(self, merge_counted: Callable[..., object], pair: Pair, new: int) -> object:
        """Call an answer, record what it looks at, and return what it returns."""
        holders = {*self.where.get(pair, ())}
        tokens = {number: {new, *list.__getitem__(self._words, number)} for number in holders}
        self._words.read, self._counts.written = set(), set()
        returned = merge_counted(self._words, self.times, self._counts, self.where, pair, new)
        self.visits, self.looks = self.visits + len(holders), self.looks + len(self._words.read)
        # Every pair of a word's tokens is its own: on the way from one merge to the next, some occur that then go.
        others = self._counts.written - {pair}.union(*(product(each, repeat=2) for each in tokens.values()))
        self.work = NO_MORE
        if not self._words.read <= holders:
            self.work = f"{len(self._words.read)} of {len(self._words)} words, and {len(holders)} held the pair"
        elif others:
            self.work = f"{len(others)} counts of pairs that are not in these words"
        return returned

    def train(self, merge_counted: Callable[..., object], merges: Iterable[Pair]) -> CountedText:
        """Merge these pairs, one after the other; the first makes token 256."""
        for new, pair in enumerate(merges, start=256):
            self.merge(merge_counted, pair, new)
        return self


def visits_needed(words: Iterable[str], merges: Sequence[Pair]) -> int:
    """Return how many words hold the pair of a merge when its turn comes, added up over the merges."""
    rank = {pair: number for number, pair in enumerate(merges)}
    return sum(_merges_in(list(word.encode()), rank) for word in words)


def _merges_in(tokens: list[int], rank: Mapping[Pair, int]) -> int:
    """Return how many different merges a word goes through."""
    done = 0
    while first := min((pair for pair in pairwise(tokens) if pair in rank), key=rank.__getitem__, default=None):
        done, place = done + 1, 0
        while place + 1 < len(tokens):
            if (tokens[place], tokens[place + 1]) == first:
                tokens[place : place + 2] = [256 + rank[first]]
            place += 1
    return done
