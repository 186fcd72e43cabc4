"""`lmcourse generate` shows each character as soon as all of its tokens are there."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from lmcourse.cli.generating import as_text
from lmcourse.data.tokenizers import ByteTokenizer


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


def test_a_piece_does_not_wait_for_the_next_token() -> None:
    asked: list[int] = []

    def tokens() -> Iterator[int]:
        for token in "aé".encode():
            asked.append(token)
            yield token

    pieces = as_text(ByteTokenizer(), tokens())
    assert (next(pieces), len(asked)) == ("a", 1)
    assert (next(pieces), len(asked)) == ("é", 3)
