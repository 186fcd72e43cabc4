"""`lmcourse generate` shows each character as soon as all of its tokens are there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from lmcourse.cli.generating import UNKNOWN, as_text
from lmcourse.data.tokenizers import ByteTokenizer, LibraryTokenizer

WORDS = ["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in "é🙂".encode()), "▁", "▁▁", "a", "▁a"]
DECODERS = {
    "metaspace": decoders.Metaspace(),
    "llama": [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)],
    "bytes": [decoders.ByteFallback(), decoders.Metaspace()],
}


@given(st.binary(max_size=40))
def test_pieces_together_are_the_text(text: bytes) -> None:
    """This includes bytes that are not UTF-8."""
    tokenizer = ByteTokenizer()
    assert "".join(as_text(tokenizer, list(text))) == tokenizer.decode(list(text))


@given(st.text(max_size=20))
def test_a_character_is_shown_as_a_whole(text: str) -> None:
    tokenizer = ByteTokenizer()
    wanted = [character for character in text if character != "\ufffd"]
    assert list(as_text(tokenizer, tokenizer.encode("".join(wanted)))) == wanted


@pytest.mark.parametrize("decoder", DECODERS)
@given(
    before=st.lists(st.sampled_from(range(len(WORDS))), max_size=4),
    tokens=st.lists(st.sampled_from([*([i] for i in range(len(WORDS))), [2, 3], [4, 5, 6, 7]]), max_size=6),
)
def test_no_space_is_lost_after_tokens_without_text(decoder: str, before: list[int], tokens: list[list[int]]) -> None:
    """Special tokens have no text, and bytes of a character have none until the last one."""
    library = Tokenizer(models.BPE({word: i for i, word in enumerate(WORDS)}, []))
    parts = DECODERS[decoder]
    library.decoder = decoders.Sequence(parts) if isinstance(parts, list) else parts
    library.add_special_tokens(WORDS[:2])
    tokenizer, new = LibraryTokenizer(json.loads(library.to_str())), [token for part in tokens for token in part]
    start, text = tokenizer.decode(before), tokenizer.decode(before + new)
    if UNKNOWN not in start + text:
        assert start + "".join(as_text(tokenizer, new, before)) == text


def test_a_piece_does_not_wait_for_the_next_token() -> None:
    asked: list[int] = []

    def tokens() -> Iterator[int]:
        for token in "aé".encode():
            asked.append(token)
            yield token

    pieces = as_text(ByteTokenizer(), tokens())
    assert (next(pieces), len(asked)) == ("a", 1)
    assert (next(pieces), len(asked)) == ("é", 3)
