"""The exercise on learning merges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from lmcourse.chapters.tokens_and_data.exercises.merging import merged
from lmcourse.chapters.tokens_and_data.exercises.right_training import RIGHT_TRAINING
from lmcourse.data.corpus_sources import stories
from lmcourse.data.tokenizers.bpe import learn_merges
from lmcourse.data.tokenizers.pre_tokenizer import split_words
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]
TOY = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def _reference(words: dict[str, int], merges: int) -> list[Pair]:
    """Use the package's function, which after a merge visits only the places of the pair.

    The words of the cases consist of letters, so that the function does not split them.
    """
    return learn_merges((word for word, times in words.items() for _ in range(times)), merges)


def _telling(random: Random) -> tuple[dict[str, int], int]:
    """Random words from which every known mistake learns other merges, so that no mark depends on luck."""
    while True:
        pool = ["".join(random.choice("abé") for _ in range(random.randint(2, 5))) for _ in range(7)]
        words, merges = {word: random.randint(1, 4) for word in pool}, random.randint(8, 14)
        right = _reference(words, merges)
        if all(wrong.answer(words, merges) != right for wrong in train_bpe.misconceptions):
            return words, merges


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("letters of several bytes", {"東京": 3, "東": 2, "京都": 2}, 6),
        case("letters of several bytes", {"😀😀": 2, "😁": 1}, 5),
        case("words with their blanks", {" low": 3, "low": 2, "lo": 2, " wow": 2}, 8),
        case("capitals", {"AbAb": 2, "abab": 3, "aBAb": 1}, 6),
        case("words of one letter", {"a": 9, "b": 5}, 3),
        case("more merges than there are", TOY, 100),
        case("all pairs are equally common", {"ba": 4, "cd": 4, "ad": 4, "ab": 4}, 4),
        case("runs of one letter", {"aaaa": 2, "aaaaaaa": 1}, 5),
        case("rare pairs", {"ab": 1, "cd": 2}, 5),
        case("rare pairs", {"abab": 1, "cd": 1}, 5),
        case("no merges", TOY, 0),
        case("no words", {}, 3),
        case("no words", {"": 7}, 3),
        case("a merge that takes pairs away", {"abc": 4, "bcd": 3, "bc": 1, "xab": 2}, 6),
        case("ties between bytes and new tokens", {"abz": 2, "zab": 2, "zz": 2}, 5),
    ]
    cases += [case("other words", *_telling(random)) for _ in range(3)]
    words = Counter(word for story in stories(600) for word in split_words(story))
    return [*cases, case("600 stories", dict(words), 300)]


train_bpe = Exercise(
    "train_bpe",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        case("aab three times, ab once", {"aab": 3, "ab": 1}, 1),
        case("low, lower, newest, widest", TOY, 5),
        case("a tie", {"ab": 2, "ba": 2, "cd": 2}, 2),
        case("a tie, larger pair first", {"zy": 3, "ab": 3}, 1),
        case("a tie with equal left tokens", {"ac": 3, "ab": 3}, 1),
        case("every pair is rare", {"ab": 1, "cd": 1}, 3),
        case("a letter of two bytes", {"élé": 4}, 3),
        case("words have borders", {"ab": 3, "ca": 2}, 4),
        case("a run", {"aaaa": 2, "aab": 1}, 3),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with list(word.encode()) for each word. Count once, with count_pairs, and write down where each pair "
        "is. Then, again and again: choose a pair, and let merge_counted do the rest.",
        "`where` is a dict of sets: where.setdefault(pair, set()).add(number) for each pair of word `number`.",
        "The most common pair, and among equals the smallest: min(counts, key=lambda pair: (-counts[pair], pair)).",
        "Stop when there are no pairs, or the best has a count below 2. Merge number i (from 0) makes token 256 + i.",
    ],
    forbid=["tokenizers", "tiktoken"],
    uses=["count_pairs", "merge", "merge_counted"],
)


def _learn(
    words: dict[str, int],
    merges: int,
    *,
    start: Callable[[str], list[int]] = lambda word: list(word.encode()),
    times: Callable[[int], int] = lambda n: n,
    key: Callable[[Pair, int], Any] = lambda pair, count: (-count, pair),
    least: int = 2,
    base: int = 256,
) -> list[Pair]:
    texts, found = [start(word) for word in words], []
    for number in range(merges):
        counts: Counter[Pair] = Counter()
        for text, many in zip(texts, words.values(), strict=True):
            for pair in pairwise(text):
                counts[pair] += times(many)
        best = min(counts, key=lambda pair: key(pair, counts[pair]), default=None)
        if best is None or counts[best] < least:
            break
        texts = [merged(text, best, base + number) for text in texts]
        found.append(best)
    return found


@train_bpe.misconception("Among equally common pairs you take the larger one. Take the smaller.")
def largest_of_equals(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, key=lambda pair, count: (-count, -pair[0], -pair[1]))


@train_bpe.misconception(
    "Among equally common pairs you take the first that you find, so your tokens depend on the order of the words."
)
def first_of_equals(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, key=lambda pair, count: -count)


@train_bpe.misconception("You count each word once. A word counts as often as it occurs.")
def each_word_once(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, times=lambda n: 1)


@train_bpe.misconception("You compare in how many words a pair is. Compare how often it occurs in the text: `counts`.")
def by_the_number_of_words(words: dict[str, int], merges: int) -> list[Pair]:
    texts = [list(word.encode()) for word in words]
    found: list[Pair] = []
    while len(found) < merges:
        places = Counter(pair for text in texts for pair in {*pairwise(text)})
        counts: Counter[Pair] = Counter()
        for text, many in zip(texts, words.values(), strict=True):
            for pair in pairwise(text):
                counts[pair] += many
        best = min(places, key=lambda pair: (-places[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        texts = [merged(text, best, 256 + len(found)) for text in texts]
        found.append(best)
    return found


@train_bpe.misconception("All your merges make the same token. Merge number i makes token 256 + i.")
def always_the_same_token(words: dict[str, int], merges: int) -> list[Pair]:
    texts = [list(word.encode()) for word in words]
    found: list[Pair] = []
    while len(found) < merges:
        counts: Counter[Pair] = Counter()
        for text, many in zip(texts, words.values(), strict=True):
            for pair in pairwise(text):
                counts[pair] += many
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        texts = [merged(text, best, 256) for text in texts]
        found.append(best)
    return found


@train_bpe.misconception("You take the rarest pair. Take the most common one: the one with the largest count.")
def rarest_first(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, key=lambda pair, count: (count, pair), least=1)


@train_bpe.misconception("You merge pairs that occur once. Stop before that: such a merge saves a single token.")
def until_nothing_left(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, least=1)


@train_bpe.misconception("You stop too early. Merge pairs that occur twice, too.")
def more_than_twice(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, least=3)


@train_bpe.misconception("You merge across the borders of words. Each word is a separate text.")
def across_words(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn({"".join(word * times for word, times in words.items()): 1}, merges)


@train_bpe.misconception(
    "You merge characters. Begin with the bytes of UTF-8: 256 tokens are then enough for any text."
)
def characters(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, start=lambda word: list(map(ord, word)))


@train_bpe.misconception("Your first merge makes 257. The bytes are 0 to 255, so it makes 256.")
def ids_from_257(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, base=257)


@train_bpe.misconception("You count once, at the start. After a merge the counts around it change.")
def never_recounted(words: dict[str, int], merges: int) -> list[Pair]:
    counts: Counter[Pair] = Counter()
    for word, many in words.items():
        for pair in pairwise(word.encode()):
            counts[pair] += many
    common = [pair for pair in counts if counts[pair] > 1]
    return sorted(common, key=lambda pair: (-counts[pair], pair))[:merges]


@train_bpe.misconception(
    "Among equally common pairs you compare the *right* tokens first. Compare the left tokens first."
)
def right_token_first(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, key=lambda pair, count: (-count, pair[1], pair[0]))


@train_bpe.misconception(
    "Among equally common pairs you compare only the left tokens. If these are equal, the right one decides."
)
def left_token_only(words: dict[str, int], merges: int) -> list[Pair]:
    return _learn(words, merges, key=lambda pair, count: (-count, pair[0]))


for right_answer in RIGHT_TRAINING:
    train_bpe.variant(right_answer)
