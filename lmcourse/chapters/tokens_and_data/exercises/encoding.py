"""The exercise on splitting a word into tokens with learned merges."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from lmcourse.chapters.tokens_and_data.exercises.calls import call
from lmcourse.chapters.tokens_and_data.exercises.merging import with_a_string as merged  # noqa: F401 - slips use it
from lmcourse.data.tokenizers.bpe import BPETokenizer, learn_merges
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]

TOY = [(101, 115), (256, 116), (108, 111), (258, 119), (101, 119)]
"""The merges es, est, lo, low and ew."""
_NE = [(195, 169), (110, 256)]


def by_rank(word: str, merges: list[tuple[int, int]]) -> list[int]:
    tokens, rank = list(word.encode()), {pair: number for number, pair in enumerate(merges)}
    while places := [at for at, pair in enumerate(pairwise(tokens)) if pair in rank]:
        at = min(places, key=lambda at: rank[tokens[at], tokens[at + 1]])
        tokens[at : at + 2] = [256 + rank[tokens[at], tokens[at + 1]]]
    return tokens


def _hidden(random: Random) -> list[Case]:
    cases = [
        call("long words", "encode_word", "ab" * 300, [(97, 98), (256, 256), (257, 257)]),
        call("runs of one letter", "encode_word", "aaaaaaa", [(97, 97), (256, 256)]),
        call("one byte", "encode_word", "b", [(97, 98)]),
        call("no merges", "encode_word", "東京", []),
        call("letters of several bytes", "encode_word", "东京東京", [(230, 157), (256, 177), (228, 186)]),
        call("a merge in the middle of two letters", "encode_word", "éé", [(169, 195), (195, 256)]),
        edge(call("the same bytes by two ways", "encode_word", "abcabc", [(98, 99), (97, 98), (97, 256), (257, 99)])),
        call("no word", "encode_word", "", TOY),
        call("a word with its space", "encode_word", " abab", [(32, 97), (97, 98), (256, 98)]),
    ]
    for _ in range(4):
        merges = learn_merges(["".join(random.choices("abé", k=80))], 9)
        cases.append(call("other words", "encode_word", " " + "".join(random.choices("abé", k=16)), merges))
    return cases


encode_word = Exercise(
    "encode_word",
    points=3,
    minutes=7,
    difficulty=2,
    reference=by_rank,
    cases=[
        call("a word that never came", "encode_word", "lowest", [*TOY, (259, 101)]),
        call("bc was learned before ab", "encode_word", "abc", [(98, 99), (97, 98), (257, 99)]),
        call("a·bc is a token", "encode_word", "abc", [(98, 99), (97, 256), (97, 98)]),
        call("two merges beside each other", "encode_word", "abcd", [(97, 98), (99, 100), (98, 99), (256, 99)]),
        call("a run of seven", "encode_word", "aaaaaaa", [(97, 97), (256, 97)]),
        call("the first merge of all, alone", "encode_word", "xaby", [(97, 98)]),
        call("the same pair twice", "encode_word", "abab", [(97, 98), (256, 97)]),
        call("no plan", "encode_word", "abbb", [(98, 98), (97, 98), (257, 98)]),
        call("nothing fits", "encode_word", "why", TOY),
        call("spaces count", "encode_word", " low ", [*TOY, (32, 108)]),
        call("one letter", "encode_word", "a", TOY),
        call("a letter of two bytes", "encode_word", "né", _NE),
        call("an empty word", "encode_word", "", TOY),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with the bytes, list(word.encode()).",
        "Training merged its pairs in a certain order. Apply the same merges, in that order, to this word.",
        "Merge number i makes token 256 + i. Your `merge` replaces its pair everywhere.",
    ],
    forbid=["tokenizers", "tiktoken"],
    uses=["merge"],
)


@encode_word.variant
def in_the_order_of_training(word: str, merges: list[tuple[int, int]]) -> list[int]:
    tokens = list(word.encode())
    for new, pair in enumerate(merges, start=256):
        at = 0
        while at < len(tokens) - 1:
            if (tokens[at], tokens[at + 1]) == pair:
                tokens[at : at + 2] = [new]
            at += 1
    return tokens


encode_word.slips(
    in_the_order_of_training,
    {
        "return tokens → raw, pieces, tokens = word.encode(), BPETokenizer(merges).token_bytes, []\n    while "
        "raw:\n        longest = max((piece for piece in pieces if raw.startswith(piece)), key=len)\n        "
        "tokens.append(pieces.index(longest))\n        raw = raw[len(longest) :]\n    return tokens": "You take the "
        "longest piece that fits. Apply the merge that was learned first.",
        "enumerate(merges, start=256) → [(256 + merges.index(pair), pair) for pair in sorted(merges)]": "You sort the "
        "merges by their numbers. Apply them in the order of the list.",
        "at = 0 → if pair not in pairwise(tokens):\n            break\n        at = 0": "You stop at the first merge "
        "that does not fit. Later merges may fit: try all of them.",
        'word.encode() → (" " + word).encode()': "You put a space in front of the word. Its bytes are the word as it "
        "is.",
        ", start=256 → ": "You make token i of merge number i. Tokens 0 to 255 are the bytes, so it makes token 256 + "
        "i.",
        "at += 1 → at += 1\n        if new in tokens:\n            break": "You stop after one merge. Apply the "
        "others, too.",
        "enumerate(merges, start=256) → reversed(list(enumerate(merges, start=256)))": "You apply the merges from the "
        "last to the first. The tokens that a late merge needs do not exist yet.",
        "word.encode() → map(ord, word)": "You start from the code points of characters. Merging starts from the bytes "
        "of UTF-8.",
        "return tokens → return [BPETokenizer(merges).token_bytes[token].decode() for token in tokens]": "You return "
        "the pieces of text. Return their numbers.",
        "= [new] → = [new]\n                break": "You apply each merge once. Apply it wherever its pair occurs.",
        "= [new] → = pair": "You return the bytes as they were. Keep what your `merge` returns; and a list never "
        "equals a tuple.",
        "start=256 → start=257": "Your new tokens begin at 257. The bytes are 0 to 255, so the first merge makes 256.",
        "word.encode() → word.strip().encode()": "You remove spaces around the word. Spaces are bytes of the word.",
    },
)


encode_word.variant(by_rank)
encode_word.slips(
    by_rank,
    {
        "min(places, key=lambda at: rank[tokens[at], tokens[at + 1]]) → places[0]": "You apply the leftmost merge that "
        "fits. The order of learning decides.",
        "while places := [at for at, pair in enumerate(pairwise(tokens)) if pair in rank]: → at = 0\n    while at < "
        "len(tokens) - 1: ;; at = min(places, key=lambda at: rank[tokens[at], tokens[at + 1]]) → if (tokens[at], "
        "tokens[at + 1]) not in rank:\n            at += 1\n            continue": "You go through the word once and "
        "join what fits on the way. The merge that was learned first comes first, wherever its pair is.",
        "if pair in rank → if rank.get(pair)": "You never apply merge 0: its number counts as False. Ask `pair in "
        "rank`.",
        "lambda at: rank → lambda at: -rank || lambda at: rank → lambda at: -rank ;; tokens[at : at + 2] = [256 + "
        "rank[tokens[at], tokens[at + 1]]] → pair = tokens[at], tokens[at + 1]\n        tokens = merged(tokens, pair, "
        "256 + rank[pair])": "You apply the merge that was learned last. Apply the one that was learned first.",
    },
)


@encode_word.misconception(
    "You look for the fewest tokens. Apply the merges in the order of training, even if the result is longer."
)
def fewest(word: str, merges: list[Pair]) -> list[int]:
    raw, pieces = word.encode(), BPETokenizer(merges).token_bytes
    best: list[list[int]] = [[]]
    for end in range(1, len(raw) + 1):
        found = ([*best[start], pieces.index(raw[start:end])] for start in range(end) if raw[start:end] in pieces)
        best.append(min(found, key=len))
    return best[-1]
