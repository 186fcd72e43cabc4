"""The exercise on counting neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, combinations, pairwise
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]
Words = list[list[int]]


def _reference(words: Words, times: list[int]) -> dict[Pair, int]:
    """Search every word for every pair that occurs anywhere."""
    if len(words) != len(times):
        raise ValueError("words and numbers differ in length")
    found = {pair for word in words for pair in pairwise(word)}
    totals = {
        pair: sum(
            many * sum(pair == (a, b) for a, b in pairwise(word)) for word, many in zip(words, times, strict=True)
        )
        for pair in found
    }
    return {pair: total for pair, total in totals.items() if total}


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("long runs", [[7] * 9, [7] * 2, [7]], [2, 3, 4]),
        case("equal words in between", [[5, 6], [7, 7], [5, 6], [7, 7]], [1, 2, 4, 8]),
        case("words that never occur", [[1, 2], [3, 4], [1, 2]], [0, 3, 0]),
        case("many times", [[255, 256, 300], [300, 255]], [1_000_000, 7]),
        case("empty words", [[], [0], [], [0, 0]], [3, 3, 3, 3]),
        case("bad input", [[1, 2]], []),
        case("bad input", [[1, 2]], [1, 2]),
    ]
    for _ in range(4):
        token = random.randint(5, 300)
        words = [[random.randint(0, 4) for _ in range(random.randint(0, 9))] for _ in range(random.randint(3, 6))]
        words += [[token] * random.randint(3, 5), [token, 1, token, 1]]
        cases.append(case("other words", words, [random.randint(1, 9) for _ in words]))
    return cases


count_pairs = Exercise(
    "count_pairs",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_reference,
    cases=[
        case("one word", [[1, 2, 3]], [1]),
        case("a run of equal tokens", [[7, 7, 7]], [1]),
        case("two words, five times and twice", [[1, 2, 3], [1, 2]], [5, 2]),
        case("both orders", [[1, 2, 1]], [3]),
        case("twice in a word", [[1, 2, 3, 1, 2]], [1]),
        case("a word of one token, and an empty one", [[9], [], [9, 8]], [4, 4, 1]),
        case("a word that occurs zero times", [[1, 2], [2, 3]], [0, 1]),
        case("the same word twice", [[5, 6], [5, 6], [6, 5]], [1, 2, 4]),
        case("no words", [], []),
        case("a number too few", [[1, 2], [3, 4]], [1]),
        case("a number too many", [[1, 2]], [1, 5]),
    ],
    hidden_cases=_hidden,
    hints=[
        "itertools.pairwise(word) goes through the neighbours of a word.",
        "Each pair adds its word's number from `times` to counts[pair]; counts.get(pair, 0) is 0 at first.",
        "zip(words, times, strict=True) raises the ValueError. Leave out the entries that are 0 at the end.",
    ],
)


def _counted(pairs: Iterable[tuple[Pair, int]]) -> dict[Pair, int]:
    counts: Counter[Pair] = Counter()
    for pair, many in pairs:
        counts[pair] += many
    return {pair: count for pair, count in counts.items() if count}


def _zip(words: Words, times: list[int]) -> Iterable[tuple[list[int], int]]:
    return zip(words, times, strict=True)


@count_pairs.misconception("You count each word once. A word that occurs five times counts five times.")
def each_word_once(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, 1) for word, many in _zip(words, times) if many for pair in pairwise(word))


@count_pairs.misconception(
    "You do not use `times`. A word that occurs zero times adds no pair, and one that occurs five times adds five."
)
def times_not_used(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, 1) for word, _ in _zip(words, times) for pair in pairwise(word))


@count_pairs.misconception(
    "You set a pair's count instead of adding to it. A pair may come again, in this word or another."
)
def counts_set(words: Words, times: list[int]) -> dict[Pair, int]:
    return {pair: many for word, many in _zip(words, times) if many for pair in pairwise(word)}


@count_pairs.misconception("You stop one pair too early: a word of n tokens has n − 1 pairs.")
def last_pair_lost(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, n) for word, n in _zip(words, times) for pair in pairwise(word[:-1]))


@count_pairs.misconception("You count every two tokens of a word. Only neighbours are a pair.")
def every_two_tokens(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, n) for word, n in _zip(words, times) for pair in combinations(word, 2))


@count_pairs.misconception("You leave out pairs that occur once. Only pairs with a count of 0 are left out.")
def once_left_out(words: Words, times: list[int]) -> dict[Pair, int]:
    return {pair: count for pair, count in _reference(words, times).items() if count > 1}


@count_pairs.misconception("You count one pair in 7 7 7. It has two: pairs may overlap.")
def no_overlap(words: Words, times: list[int]) -> dict[Pair, int]:
    counts: Counter[Pair] = Counter()
    for word, many in _zip(words, times):
        last: dict[Pair, int] = {}
        for at, pair in enumerate(pairwise(word)):
            if many and last.get(pair, -2) < at - 1:
                counts[pair] += many
                last[pair] = at
    return dict(counts)


@count_pairs.misconception(
    "You count pairs across words. The end of a word and the start of the next are not neighbours."
)
def across_words(words: Words, times: list[int]) -> dict[Pair, int]:
    text = [token for word, many in _zip(words, times) for token in word * many]
    return dict(Counter(pairwise(text)))


@count_pairs.misconception(
    "You pair the last token of a word with the first of the next word. No pair reaches across the border of two words."
)
def into_the_next_word(words: Words, times: list[int]) -> dict[Pair, int]:
    longer = [word + after[:1] for word, after in zip(words, [*words[1:], []], strict=False)]
    return _counted((pair, n) for word, n in _zip(longer, times) for pair in pairwise(word))


@count_pairs.misconception("You count (1, 2) and (2, 1) together. They are different pairs.")
def either_order(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted(((min(a, b), max(a, b)), n) for word, n in _zip(words, times) for a, b in pairwise(word))


@count_pairs.misconception("You look at every second pair only. Each token except the last has a right neighbour.")
def every_two(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted(((a, b), n) for word, n in _zip(words, times) for a, b in list(pairwise(word))[::2])


@count_pairs.misconception("You count single tokens. Count pairs of neighbours.")
def single_tokens(words: Words, times: list[int]) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for word, many in _zip(words, times):
        for token in word:
            counts[token] += many
    return {token: count for token, count in counts.items() if count}


@count_pairs.misconception("You add an entry of 0 for a word that occurs zero times. It adds no entry.")
def zeros_kept(words: Words, times: list[int]) -> dict[Pair, int]:
    counts: Counter[Pair] = Counter()
    for word, many in _zip(words, times):
        for pair in pairwise(word):
            counts[pair] += many
    return dict(counts)


@count_pairs.misconception("You pair the last token of a word with its first. They are not neighbours.")
def wraps_round(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, n) for word, n in _zip(words, times) for pair in pairwise(word + word[:1]))


@count_pairs.misconception("You count in how many words a pair occurs. Within one word it may occur several times.")
def once_a_word(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, n) for word, n in _zip(words, times) for pair in set(pairwise(word)))


@count_pairs.misconception(
    "You return counts even if there is a number too few or too many. Compare the two lengths, and raise ValueError."
)
def cut_short(words: Words, times: list[int]) -> dict[Pair, int]:
    return _counted((pair, n) for word, n in zip(words, times, strict=False) for pair in pairwise(word))


@count_pairs.misconception("You raise ValueError only if a number is missing. Raise it also if there is one too many.")
def only_too_few(words: Words, times: list[int]) -> dict[Pair, int]:
    if len(times) < len(words):
        raise ValueError("words and numbers differ in length")
    return _counted((pair, n) for word, n in zip(words, times, strict=False) for pair in pairwise(word))


@count_pairs.misconception("You keep words as keys of a dict. Of two equal words, only the last one's number counts.")
def words_as_keys(words: Words, times: list[int]) -> dict[Pair, int]:
    table = dict(zip(map(tuple, words), times, strict=True))
    return _counted((pair, n) for word, n in table.items() for pair in pairwise(word))


@count_pairs.variant
def with_a_counter(words: list[list[int]], times: list[int]) -> Counter[tuple[int, int]]:
    if len(words) != len(times):
        raise ValueError("words and numbers differ in length")
    counts: Counter[tuple[int, int]] = Counter()
    for word, many in zip(words, times, strict=False):
        for _ in range(1 if many else 0):
            for pair in pairwise(word):
                counts[pair] += many
    return counts


@count_pairs.variant
def with_indices(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    if len(times) != len(words):
        raise ValueError
    counts: dict[tuple[int, int], int] = {}
    for i in range(len(words)):
        if times[i] == 0:
            continue
        for j in range(len(words[i]) - 1):
            pair = words[i][j], words[i][j + 1]
            if pair not in counts:
                counts[pair] = 0
            counts[pair] += times[i]
    return counts


@count_pairs.variant
def with_numpy(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    if len(words) - len(times):
        raise ValueError("words and numbers differ in length")
    rows = list(
        chain.from_iterable([(a, b, n) for a, b in pairwise(w)] for w, n in zip(words, times, strict=True) if n)
    )
    if not rows:
        return {}
    table = np.array(rows)
    pairs, index = np.unique(table[:, :2], axis=0, return_inverse=True)
    sums = np.bincount(index.ravel(), weights=table[:, 2]).astype(int)
    return {(int(a), int(b)): int(n) for (a, b), n in zip(pairs, sums, strict=True)}
