"""The tokenizer of any published model, run by Hugging Face's `tokenizers`, so that models of others can write, too."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lmcourse.errors import CourseError


class LibraryTokenizer:
    """A tokenizer.json as its own library reads it, special tokens included: they are put before a text where the file
    says so, and left out of what is decoded.

    Args:
        path: the file.

    Attributes:
        vocab_size: how many tokens there are, special ones included.

    Raises:
        CourseError: the library is not installed, or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        if find_spec("tokenizers") is None:
            raise CourseError(f"{path} needs the library that it was made with: pip install tokenizers")
        try:
            self._tokenizer = import_module("tokenizers").Tokenizer.from_file(str(path))
        except Exception as error:  # it has no other
            raise CourseError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
        self.path, self.vocab_size = path, int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """The text's tokens.

        Raises:
            ValueError: the text has a character that the tokenizer does not know.
        """
        try:
            return list(self._tokenizer.encode(text).ids)
        except Exception as error:  # it has no other
            raise ValueError(f"{self.path} cannot cut this text into tokens: {error}") from None

    def decode(self, tokens: Sequence[int]) -> str:
        """The text that these tokens stand for."""
        return str(self._tokenizer.decode(list(tokens)))

    def to_json(self) -> dict[str, Any]:
        """Where it was read from."""
        return {"kind": "library", "path": str(self.path)}
