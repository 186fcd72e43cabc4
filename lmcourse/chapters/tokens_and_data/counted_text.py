"""A text that records which of its words and counts an answer reads or writes, for the check of `merge_counted`.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import pairwise, product
from typing import Any

Pair = tuple[int, int]
Where = dict[Pair, set[int]]

NO_MORE = "nothing but the words that hold the pair"
"""The description of a merge that reads no more words than necessary."""


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


class WrittenCounts(Counter[Pair]):
    """A Counter that records the pairs whose counts are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[Pair] = set()

    def __setitem__(self, pair: Pair, count: int) -> None:
        self.written.add(pair)
        super().__setitem__(pair, count)

    def __delitem__(self, pair: Any) -> None:
        self.written.add(pair)
        super().__delitem__(pair)

    # dict's own versions would write without calling the two methods above.
    popitem = MutableMapping.popitem
    clear = MutableMapping.clear

    def setdefault(self, pair: Pair, default: Any = None) -> Any:
        """Return the count of a pair; if it has none, it gets the default."""
        if pair not in self:
            self[pair] = default
        return self[pair]

    def pop(self, pair: Pair, *default: Any) -> Any:
        """Remove a pair, and record it."""
        self.written.add(pair)
        return super().pop(pair, *default)


class CountedText:
    """Words with the counts and places of their pairs, as `merge_counted` takes them.

    Attributes:
        words: the words' tokens; `times` has the number of times that each occurs.
        counts: how often each pair of neighbours occurs in the text.
        where: the numbers of the words that hold each pair.
        looks: the number of words that the merges really read, each counted once per merge.
        work: a sentence about the words that the last merge read.
    """

    def __init__(self, words: Sequence[Sequence[int]], times: Sequence[int]) -> None:
        self._words = ReadWords(map(list, words))
        self._counts = WrittenCounts()
        self.times = [*times]
        self._where: Where = defaultdict(set)
        self.looks = 0
        self.work = ""
        for number, (word, many) in enumerate(zip(words, times, strict=True)):
            for pair in pairwise(word):
                self._counts[pair] += many
                self._where[pair].add(number)

    @classmethod
    def of_bytes(cls, words: Mapping[str, int]) -> CountedText:
        """Begin with the bytes of words: {"low": 5}."""
        return cls([list(word.encode()) for word in words], [*words.values()])

    @property
    def words(self) -> list[list[int]]:
        """The words' tokens; reading them here is not recorded."""
        return [[*word] for word in list.__iter__(self._words)]

    @property
    def counts(self) -> dict[Pair, int]:
        """The count of each pair, as `merge_counted` left it."""
        return dict(self._counts)

    @property
    def where(self) -> Where:
        """The places of each pair, as `merge_counted` left them."""
        return dict(self._where)

    def merge(self, merge_counted: Callable[..., object], pair: Pair, new: int) -> object:
        """Call an answer, record the words and counts that it uses, and return its result."""
        holders = {*self.where.get(pair, ())}
        tokens = {number: {new, *list.__getitem__(self._words, number)} for number in holders}
        self._words.read, self._counts.written = set(), set()
        returned = merge_counted(self._words, self.times, self._counts, self._where, pair, new)
        self.looks += len(self._words.read)
        # Any pair of the tokens of such a word may be written: an answer may create pairs that disappear in the same
        # merge.
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
