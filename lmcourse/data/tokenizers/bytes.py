"""Byte tokenizer, which needs no training: a token is a byte of the text's UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmcourse.data.tokenizers.lookup import look_up, to_utf8

BYTES = tuple(bytes([value]) for value in range(256))


class ByteTokenizer:
    """256 tokens for every text of the world; English has one token per letter, Chinese three per character.

    Attributes:
        vocab_size: 256.
    """

    vocab_size = len(BYTES)

    def encode(self, text: str) -> list[int]:
        """The bytes.

        Raises:
            ValueError: the text has half a character (a lone surrogate).
        """
        return list(to_utf8(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text; U+FFFD for what is no UTF-8.

        Raises:
            ValueError: there is no such token.
        """
        return b"".join(look_up(BYTES, tokens)).decode(errors="replace")

    def to_json(self) -> dict[str, Any]:
        """Its `kind` alone: it has no other state."""
        return {"kind": "bytes"}
