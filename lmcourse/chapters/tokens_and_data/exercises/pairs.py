"""The exercise on counting neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise
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


@count_pairs.variant
def word_by_word(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for word, many in zip(words, times, strict=True):
        for pair in pairwise(word):
            counts[pair] = counts.get(pair, 0) + many
    return {pair: count for pair, count in counts.items() if count}


count_pairs.slips(
    word_by_word,
    {
        "+ many → + (many > 0)": "You count each word once. A word that occurs five times counts five times.",
        "+ many → + 1": "You do not use `times`. A word that occurs zero times adds no pair, and one that occurs five "
        "times adds five.",
        "counts.get(pair, 0) + many → many": "You set a pair's count instead of adding to it. A pair may come again, "
        "in this word or another.",
        "pairwise(word) → pairwise(word[:-1])": "You stop one pair too early: a word of n tokens has n − 1 pairs.",
        "pairwise(word) → ((a, b) for at, a in enumerate(word) for b in word[at + 1 :])": "You count every two tokens "
        "of a word. Only neighbours are a pair.",
        "if count} → if count > 1}": "You leave out pairs that occur once. Only pairs with a count of 0 are left out.",
        'pairwise(word) → set(pairwise(word)) ;; + many → + many * "".join(map(chr, word)).count("".join(map(chr, '
        "pair)))": "You count one pair in 7 7 7. It has two: pairs may overlap.",
        "for word, many in zip(words, times, strict=True): → text = [token for word, many in zip(words, times, "
        "strict=True) for token in word * many]\n    for word, many in [(text, 1)]:": "You count pairs across words. "
        "The end of a word and the start of the next are not neighbours.",
        "zip(words, → zip([word + after[:1] for word, after in zip(words, [*words[1:], []])],": "You pair the last "
        "token of a word with the first of the next word. No pair reaches across the border of two words.",
        "pairwise(word) → map(tuple, map(sorted, pairwise(word)))": "You count (1, 2) and (2, 1) together. They are "
        "different pairs.",
        "pairwise(word) → list(pairwise(word))[::2]": "You look at every second pair only. Each token except the last "
        "has a right neighbour.",
        "pairwise(word) → word": "You count single tokens. Count pairs of neighbours.",
        " if count} → }": "You add an entry of 0 for a word that occurs zero times. It adds no entry.",
        "pairwise(word) → pairwise(word + word[:1])": "You pair the last token of a word with its first. They are not "
        "neighbours.",
        "pairwise(word) → set(pairwise(word))": "You count in how many words a pair occurs. Within one word it may "
        "occur several times.",
        ", strict=True → ": "You return counts even if there is a number too few or too many. Compare the two lengths, "
        "and raise ValueError.",
        "times, strict → times[: len(words)], strict": "You raise ValueError only if a number is missing. Raise it "
        "also if there is one too many.",
        "zip(words, times, strict=True) → dict(zip(map(tuple, words), times, strict=True)).items()": "You keep words "
        "as keys of a dict. Of two equal words, only the last one's number counts.",
    },
)


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
