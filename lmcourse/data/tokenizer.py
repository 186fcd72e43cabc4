"""The tokenizer interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Tokenizer(Protocol):
    """Text to tokens and back: `decode(encode(text)) == text` for every text that it can read.

    Attributes:
        vocab_size: how many tokens there are; ids go from 0 to vocab_size − 1.
    """

    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """The text's tokens.

        Raises:
            ValueError: the text has a character that this tokenizer does not know.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """The text that these tokens stand for. A token cut out of the middle of a character becomes U+FFFD.

        Raises:
            ValueError: there is no such token.
        """

    def to_json(self) -> dict[str, Any]:
        """All that is needed to rebuild it, with its `kind`."""
