"""The exercise on learning merges."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

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


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("letters of several bytes", {"東京": 3, "東": 2, "京都": 2}, 6),
        case("words with their spaces", {" low": 3, "low": 2, "lo": 2, " wow": 2}, 8),
        case("words of one letter", {"a": 9, "b": 5}, 3),
        case("more merges than there are", TOY, 100),
        case("all pairs are equally common", {"ba": 4, "cd": 4, "ad": 4, "ab": 4}, 4),
        case("runs of one letter", {"aaaa": 2, "aaaaaaa": 1}, 5),
        case("rare pairs", {"ab": 1, "cd": 2}, 5),
        case("no merges", TOY, 0),
        *(case("no words", words, 3) for words in ({}, {"": 7})),
        case("a merge that takes pairs away", {"abc": 4, "bcd": 3, "bc": 1, "xab": 2}, 6),
    ]
    for _ in range(3):
        pool = ["".join(random.choices("abé", k=random.randint(2, 5))) for _ in range(9)]
        cases.append(case("other words", {word: random.randint(1, 4) for word in pool}, 12))
    words = Counter(word for story in stories(300) for word in split_words(story))
    return [*cases, case("300 stories", dict(words), 100)]


train_bpe = Exercise(
    "train_bpe",
    points=3,
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
        case("ties between bytes and new tokens", {"abz": 2, "zab": 2, "zz": 2}, 5),
        case("words have borders", {"ab": 3, "ca": 2}, 4),
        case("a run", {"aaaa": 2, "aab": 1}, 3),
    ],
    hidden_cases=_hidden,
    hints=[
        "The first lines have counted. Then, again and again: choose a pair, and let merge_counted do the rest.",
        "The most common pair, and among equals the smallest: min(counts, key=lambda pair: (-counts[pair], pair)).",
        "Stop when there are no pairs, or the best has a count below 2. Merge number i (from 0) makes token 256 + i.",
    ],
    forbid=["tokenizers", "tiktoken"],
    uses=["merge_counted"],
)


@train_bpe.variant
def with_strings(words: dict[str, int], merges: int) -> list[tuple[int, int]]:
    texts = ["".join(map(chr, word.encode())) for word in words]
    learned: list[tuple[str, str]] = []
    while len(learned) < merges:
        counts: Counter[tuple[str, str]] = Counter()
        for text, many in zip(texts, words.values(), strict=True):
            for pair in pairwise(text):
                counts[pair] += many
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        texts = [text.replace("".join(best), chr(256 + len(learned))) for text in texts]
        learned.append(best)
    return [(ord(left), ord(right)) for left, right in learned]


train_bpe.slips(
    with_strings,
    {
        "(-counts[pair], pair) → (-counts[pair], -ord(pair[0]), -ord(pair[1]))": "Among equally common pairs you take "
        "the larger one. Take the smaller.",
        "(-counts[pair], pair) → -counts[pair]": "Among equally common pairs you take the first that you find, so your "
        "tokens depend on the order of the words.",
        **{
            "learned: list[tuple[str, str]] = [] → learned, kept = [], {} ;; best = min(counts, key=lambda pair: "
            "(-counts[pair], pair) → kept = {pair: counts[pair] for pair in [*kept, *counts] if pair in counts}"
            f"\n        best = max({pairs}, key=kept.get": f"Among equally common pairs you take the {which} in "
            f"`counts`{known}. Take the smaller pair."
            for pairs, which, known in (("kept", "first", ", as `most_common` does"), ("reversed(kept)", "last", ""))
        },
        "min(counts, key=lambda pair: (-counts[pair], pair) → max(reversed(counts), key=counts.get": "Among equally "
        "common pairs you take the last in `counts`. Take the smaller pair.",
        "+= many → += 1": "You count each word once. A word counts as often as it occurs.",
        "best = min(counts, key=lambda pair: (-counts[pair], pair) → places = Counter(pair for text in texts for pair "
        "in {*pairwise(text)})\n        best = min(places, key=lambda pair: (-places[pair], pair)": "You compare in "
        "how many words a pair is. Compare how often it occurs in the text: `counts`.",
        "256 + len(learned) → 256": "All your merges make the same token. Merge number i makes token 256 + i.",
        "(-counts → (counts ;; < 2 → < 1": "You take the rarest pair. Take the most common one: the one with the "
        "largest count.",
        "< 2 → < 1": "You merge pairs that occur once. Stop before that: such a merge saves a single token.",
        "< 2 → < 3": "You stop too early. Merge pairs that occur twice, too.",
        'texts = [" → words = {"".join(word * times for word, times in words.items()): 1}\n    texts = ["': "You merge "
        "across the borders of words. Each word is a separate text.",
        '"".join(map(chr, word.encode())) → word': "You merge characters. Begin with the bytes of UTF-8: 256 tokens "
        "are then enough for any text.",
        "learned: list[tuple[str, str]] = [] → learned, raw = [], {chr(byte): bytes([byte]) for byte in range(256)} ;; "
        "(-counts[pair], pair) → (-counts[pair], raw[pair[0]], raw[pair[1]]) ;;         learned.append(best) →         "
        "raw[chr(256 + len(learned))] = raw[best[0]] + raw[best[1]]\n        learned.append(best)": "Among equally "
        "common pairs you compare the bytes of the tokens. Compare their numbers: a new token comes after all bytes.",
        "counts[best] < 2 → sum(best in [*pairwise(text)] for text in texts) < 2": "You stop at a pair that is in one "
        "word only. Stop where it occurs once in the text: a word may come several times.",
        ", default=None) → )": "When no pair is left, `min` looks for the best of nothing, and raises an error. Stop "
        "before that.",
        "256 + → 257 +": "Your first merge makes 257. The bytes are 0 to 255, so it makes 256.",
        'min(counts, → min(counts.keys() - learned, ;;         texts = [text.replace("".join(best), chr(256 + '
        "len(learned))) for text in texts]\n → ": "You count once, at the start. After a merge the counts around it "
        "change.",
        "(-counts[pair], pair) → (-counts[pair], pair[::-1])": "Among equally common pairs you compare the *right* "
        "tokens first. Compare the left tokens first.",
        "(-counts[pair], pair) → (-counts[pair], pair[0])": "Among equally common pairs you compare only the left "
        "tokens. If these are equal, the right one decides.",
    },
)
