"""Merges match `tokenizers`, and the work is proportional to the length of the text."""

from __future__ import annotations

import json
import random

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmcourse.data.tokenizers import BPETokenizer
from lmcourse.data.tokenizers.bpe import Pair, TokenChain
from lmcourse.data.tokenizers.pre_tokenizer import PATTERN, split_words
from tests.data.texts import ENGLISH, EVERY, ODD

small_texts = st.lists(st.text("ab é東", max_size=30), max_size=6)
ONE_WORD = "abracadabra" * 60 + "aaaaaaa" * 9 + "東京東" * 20


def latin(text: str) -> str:
    """Return each byte as the character with the same number, so that token i of `tokenizers` is byte i."""
    return text.encode().decode("latin-1")


def train_theirs(texts: list[str], vocab_size: int) -> tuple[list[Pair], tokenizers.Tokenizer]:
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), behavior="isolated")
    alphabet = [chr(byte) for byte in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator(map(latin, texts), trainer)
    model = json.loads(theirs.to_str())["model"]
    return [(model["vocab"][left], model["vocab"][right]) for left, right in model["merges"]], theirs


@given(texts=small_texts, vocab_size=st.integers(256, 290))
@example(texts=[ONE_WORD], vocab_size=330)
@settings(deadline=None)
def test_merges_and_tokens_match_tokenizers(texts: list[str], vocab_size: int) -> None:
    """Texts of few characters have many ties, runs of one letter with overlapping pairs, and letters of several
    bytes."""
    ours = BPETokenizer.train(texts, vocab_size)
    merges, theirs = train_theirs(texts, vocab_size)
    assert ours.merges == merges
    assert len(set(ours.token_bytes)) == ours.vocab_size, "each comes from one merge only"
    for text in texts:
        assert ours.encode(text) == theirs.encode(latin(text)).ids


def test_merges_match_an_example_by_hand() -> None:
    """ab occurs three times, then abc twice, and bd once. No further pair occurs twice."""
    tokenizer = BPETokenizer.train(["abc", "abc", "abd"], 300)
    assert tokenizer.merges == [(97, 98), (256, 99)]
    assert tokenizer.token_bytes[256:] == [b"ab", b"abc"]
    assert tokenizer.encode("abcab abd") == [257, 256, 32, 256, 100]
    assert BPETokenizer.train(["ba ba", "ab ab"], 300).merges == [(97, 98), (98, 97)], "of ties, the smaller first"


def test_each_merge_is_reported() -> None:
    reported: list[int] = []
    tokenizer = BPETokenizer.train(ENGLISH, 270, reported.append)
    assert reported == list(range(1, len(tokenizer.merges) + 1)) == list(range(1, 15))


def test_work_grows_in_proportion_to_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test counts the pairs that training and encoding visit in one long word of random letters."""
    looked = 0

    def counted(chain: TokenChain, left: int) -> Pair:
        nonlocal looked
        looked += 1
        return chain.tokens[left], chain.tokens[chain.after[left]]

    monkeypatch.setattr(TokenChain, "pair", counted)
    letters = random.Random(0)
    work: dict[int, tuple[int, int]] = {}
    for length in (2_000, 16_000):
        word = "".join(letters.choices("etaoinshrdlu", k=length))
        looked = 0
        tokenizer = BPETokenizer.train([word], 600)
        training, looked = looked, 0
        tokenizer.encode(word)
        work[length] = training, looked
    for few, many in zip(work[2_000], work[16_000], strict=True):
        assert many < 12 * few, "eight times the length: in proportion is 8 times the work, quadratic 64"


@given(text=EVERY)
@example(text=ODD)
@settings(deadline=None)
def test_words_match_tokenizers(text: str) -> None:
    words = split_words(text)
    assert "".join(words) == text
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), behavior="isolated")
    assert [word for word, _ in split.pre_tokenize_str(text)] == words


@given(text=st.text(st.characters(max_codepoint=127)) | st.text("a1 '.\n"))
@example(text="it's 12 3a  b !\n\n c\t")
@example(text="don't we'll I've they're she'd I'm 'tis 's")
def test_words_of_ascii_match_gpt_2(text: str) -> None:
    """`tokenizers` has GPT-2's rule built in; as in ours, \\x1c to \\x1f are not white space."""
    gpt_2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    borders = [begin for _, (begin, _) in gpt_2.pre_tokenize_str(text)]
    words = split_words(text)
    assert borders == [sum(map(len, words[:index])) for index in range(len(words))]
