"""Byte pairs: the plain ones are those of the definition, of `tokenizers` and of `tiktoken`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from types import SimpleNamespace

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmcourse.data.tokenizers import BPETokenizer, FastBPETokenizer, fast_bpe, load_tokenizer
from lmcourse.data.tokenizers.pre_tokenizer import PATTERN, split_words
from lmcourse.errors import CourseError
from tests.data.texts import ENGLISH, EVERY, ODD

small_texts = st.lists(st.text("ab é東", max_size=30), max_size=6)


@pytest.fixture(scope="module")
def plain() -> BPETokenizer:
    return BPETokenizer.train(ENGLISH, 600)


@pytest.fixture(scope="module")
def fast(plain: BPETokenizer) -> FastBPETokenizer:
    """Encodes with tiktoken where that is installed."""
    return FastBPETokenizer(plain.merges)


@pytest.fixture(scope="module")
def without_tiktoken(plain: BPETokenizer) -> Callable[[str], list[int]]:
    return fast_bpe._hugging_face(plain.token_bytes, plain.merges)


@given(text=EVERY)
@example(text=ODD)
@settings(deadline=None)
def test_plain_and_fast_give_the_same_tokens(
    plain: BPETokenizer, fast: FastBPETokenizer, without_tiktoken: Callable[[str], list[int]], text: str
) -> None:
    assert fast.encode(text) == plain.encode(text) == without_tiktoken(text)


@given(texts=small_texts, vocab_size=st.integers(256, 290))
@settings(deadline=None, max_examples=200)
def test_plain_and_fast_learn_the_same_merges(texts: list[str], vocab_size: int) -> None:
    """Of a few characters: ties everywhere, runs of one letter, whose pairs overlap, and letters of several bytes."""
    plain, fast = BPETokenizer.train(texts, vocab_size), FastBPETokenizer.train(texts, vocab_size)
    assert plain.merges == fast.merges
    assert len(set(plain.token_bytes)) == plain.vocab_size, "each comes from one merge only"
    for text in texts:
        assert plain.encode(text) == fast.encode(text)


def test_plain_and_fast_learn_the_same_merges_from_english(plain: BPETokenizer) -> None:
    assert FastBPETokenizer.train(ENGLISH, 600).merges == plain.merges
    assert plain.vocab_size == 600


def naive_merges(words: list[str], merges: int) -> list[tuple[int, int]]:
    """Byte pairs as they are defined: count all pairs anew, merge the commonest (ties: the smallest), everywhere."""
    sequences = [list(word.encode()) for word in words]
    found: list[tuple[int, int]] = []
    while len(found) < merges:
        pairs = [pair for sequence in sequences for pair in pairwise(sequence)]
        best = min(set(pairs), key=lambda pair: (-pairs.count(pair), pair), default=None)
        if best is None or pairs.count(best) < 2:
            break
        for sequence in sequences:
            place = 0
            while place < len(sequence) - 1:
                if (sequence[place], sequence[place + 1]) == best:
                    sequence[place : place + 2] = [256 + len(found)]
                place += 1
        found.append(best)
    return found


@given(texts=small_texts)
@settings(deadline=None)
def test_merges_are_those_of_the_definition(texts: list[str]) -> None:
    words = [word for text in texts for word in split_words(text)]
    assert BPETokenizer.train(texts, 270).merges == naive_merges(words, 14)


def test_merges_by_hand() -> None:
    """ab occurs three times, then abc twice; bd once. Of the ties that follow none was seen twice."""
    tokenizer = BPETokenizer.train(["abc", "abc", "abd"], 300)
    assert tokenizer.merges == [(97, 98), (256, 99)]
    assert tokenizer.token_bytes[256:] == [b"ab", b"abc"]
    assert tokenizer.encode("abcab abd") == [257, 256, 32, 256, 100]
    assert BPETokenizer.train(["ba ba", "ab ab"], 300).merges == [(97, 98), (98, 97)], "of ties, the smaller first"


@given(text=EVERY)
@example(text=ODD)
@settings(deadline=None)
def test_words_are_cut_alike_everywhere(text: str) -> None:
    words = split_words(text)
    assert "".join(words) == text
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), behavior="isolated")
    assert [word for word, _ in split.pre_tokenize_str(text)] == words


@given(text=st.text(st.characters(max_codepoint=127)) | st.text("a1 '.\n"))
@example(text="it's 12 3a  b !\n\n c\t")
@example(text="don't we'll I've they're she'd I'm 'tis 's")
def test_words_of_ascii_are_those_of_gpt_2(text: str) -> None:
    """`tokenizers` has GPT-2's rule built in; there \\x1c to \\x1f are no white space, as here."""
    gpt_2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    borders = [begin for _, (begin, _) in gpt_2.pre_tokenize_str(text)]
    words = split_words(text)
    assert borders == [sum(map(len, words[:index])) for index in range(len(words))]


def test_what_is_installed_decides(plain: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = plain.to_json()
    assert isinstance(load_tokenizer(saved), FastBPETokenizer)

    def none(name: str) -> None:
        return None if name in ("tiktoken", "tokenizers") else find_spec(name)

    monkeypatch.setattr(fast_bpe, "find_spec", none)
    monkeypatch.setattr("lmcourse.data.tokenizers.load.find_spec", none)
    assert type(load_tokenizer(saved)) is BPETokenizer
    with pytest.raises(CourseError, match="pip install tokenizers"):
        FastBPETokenizer.train(["text"], 300)


def test_tiktoken_is_taken_where_it_is_installed(plain: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is given what makes its tokens ours: the words, and the pieces ranked in the order of their tokens."""
    given: dict[str, object] = {}

    class Encoding:
        def __init__(self, name: str, **settings: object) -> None:
            given.update(settings)

        def encode_ordinary(self, text: str) -> list[int]:
            return [7]

    monkeypatch.setattr(fast_bpe, "find_spec", lambda name: name == "tiktoken")
    monkeypatch.setattr(fast_bpe, "import_module", {"tiktoken": SimpleNamespace(Encoding=Encoding)}.__getitem__)
    assert FastBPETokenizer(plain.merges).encode("text") == [7]
    ranks = {piece: token for token, piece in enumerate(plain.token_bytes)}
    assert given == {"pat_str": PATTERN, "mergeable_ranks": ranks, "special_tokens": {}}
