"""Helpers of all tokenizers: text to UTF-8, and tokens to their characters or bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Text = TypeVar("Text", str, bytes)


def to_utf8(text: str) -> bytes:
    """The text's bytes.

    Raises:
        ValueError: it has half of a surrogate pair, which Python allows in a str and UTF-8 has no bytes for.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise ValueError(f"character {error.start} of the text, {half}, is half of a character") from None


def look_up(vocab: Sequence[Text], tokens: Sequence[int]) -> list[Text]:
    """The characters or bytes of every token.

    Raises:
        ValueError: there is no such token. (A list would take a negative one from its end.)
    """
    if wrong := [token for token in tokens if not 0 <= token < len(vocab)]:
        raise ValueError(f"there is no token {wrong[0]}: the vocabulary has 0 to {len(vocab) - 1}")
    return [vocab[token] for token in tokens]
