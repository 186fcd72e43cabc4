"""Tokenizers, also saved ones, restore every text, and mistakes are reported in one line."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings

from lmcourse.base.errors import CourseError
from lmcourse.data.tokenizers import BPETokenizer, ByteTokenizer, CharacterTokenizer, Tokenizer, load_tokenizer
from tests.data.texts import ENGLISH, EVERY, ODD


@pytest.fixture(scope="module")
def kinds() -> dict[str, Tokenizer]:
    return {
        "bytes": ByteTokenizer(),
        "characters": CharacterTokenizer.train([*ENGLISH, ODD]),
        "bpe": BPETokenizer.train(ENGLISH, 600),
    }


@given(text=EVERY)
@example(text=ODD)
@settings(deadline=None)
def test_decoding_restores_a_text_also_with_saved_tokenizers(kinds: dict[str, Tokenizer], text: str) -> None:
    tokenizers = [kinds["bytes"], kinds["bpe"]] + ([CharacterTokenizer.train([text])] if text else [])
    for tokenizer in tokenizers:
        tokens = tokenizer.encode(text)
        assert tokenizer.decode(tokens) == text
        assert load_tokenizer(json.loads(json.dumps(tokenizer.to_json()))).encode(text) == tokens


def test_a_partial_character_decodes_to_the_replacement_character() -> None:
    for tokenizer in (ByteTokenizer(), BPETokenizer([])):
        cat = tokenizer.encode("🐈")
        assert len(cat) == 4
        assert tokenizer.decode(cat[:2]) == "\ufffd"
        assert tokenizer.decode([*cat, *cat[1:2], 97]) == "🐈\ufffda"


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_an_unknown_token_is_rejected(kinds: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = kinds[kind]
    for token in (-1, tokenizer.vocab_size):
        with pytest.raises(ValueError, match=f"there is no token {token}: the vocabulary has 0 to"):
            tokenizer.decode([0, token])


@pytest.mark.parametrize("kind", ["bytes", "bpe"])
def test_half_a_surrogate_pair_is_rejected(kinds: dict[str, Tokenizer], kind: str) -> None:
    with pytest.raises(ValueError, match=r"character 2 of the text, U\+D83D, is half of a surrogate pair"):
        kinds[kind].encode("ab\ud83d")


def test_training_on_half_a_surrogate_pair_is_rejected() -> None:
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        BPETokenizer.train(["\ud83d"], 300)


def test_an_unknown_character_is_reported() -> None:
    with pytest.raises(
        ValueError, match=r"has no token for 'é' \(character 3 of the text\): train it on a text"
    ) as error:
        CharacterTokenizer.train(["cafe"]).encode("café")
    assert "\n" not in str(error.value)


def test_characters_are_numbered_in_the_order_of_unicode() -> None:
    tokenizer = CharacterTokenizer.train(["bé", "a"])
    assert (tokenizer.characters, tokenizer.vocab_size) == ("abé", 3)
    assert tokenizer.encode("éab") == [2, 0, 1]


def test_invalid_tokenizers_are_rejected() -> None:
    for characters in ("", "aba"):
        with pytest.raises(ValueError, match="no character twice"):
            CharacterTokenizer(characters)
    with pytest.raises(ValueError, match="no character twice"):
        CharacterTokenizer.train([])
    with pytest.raises(ValueError, match="at least 256, the bytes alone"):
        BPETokenizer.train([], 255)
    with pytest.raises(ValueError, match="no token 256"):
        BPETokenizer([(97, 256)])
    with pytest.raises(ValueError, match="the same bytes"):
        BPETokenizer([(97, 97), (97, 97)])


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"kind": "words"}, "no tokenizer of kind 'words'"),
        ({}, "not a tokenizer that the course saved: KeyError"),
        ({"kind": "bpe"}, "not a tokenizer that the course saved: KeyError"),
        ({"kind": "bpe", "merges": [[97, 300]]}, "ValueError, there is no token 300"),
        ({"kind": "bpe", "merges": 3}, "TypeError"),
        ({"kind": "characters", "characters": "aa"}, "ValueError"),
    ],
)
def test_an_invalid_saved_tokenizer_is_rejected(saved: dict[str, object], message: str) -> None:
    with pytest.raises(CourseError, match=message):
        load_tokenizer(saved)
