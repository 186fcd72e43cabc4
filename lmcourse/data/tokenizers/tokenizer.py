"""The tokenizer interface, and the two tokenizers that learn no merges: bytes and characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

Text = TypeVar("Text", str, bytes)

BYTES = tuple(bytes([value]) for value in range(256))


class Tokenizer(Protocol):
    """Text to tokens and back: `decode(encode(text)) == text` for every text that it can read.

    Attributes:
        vocab_size: how many tokens there are; ids go from 0 to vocab_size − 1.
    """

    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """The text's tokens.

        Raises:
            ValueError: the tokenizer does not know a character, or there is half of one (a lone surrogate).
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these tokens. A token that ends inside a character becomes U+FFFD.

        Raises:
            ValueError: there is no such token.
        """

    def to_json(self) -> dict[str, Any]:
        """Return everything that is needed to rebuild the tokenizer, with its `kind`."""


class ByteTokenizer:
    """256 tokens for any text: one per letter in English, three per character in Chinese.

    Attributes:
        vocab_size: 256.
    """

    vocab_size = len(BYTES)

    def encode(self, text: str) -> list[int]:
        """The bytes of the text's UTF-8."""
        return list(to_utf8(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(look_up(BYTES, tokens)).decode(errors="replace")

    def to_json(self) -> dict[str, Any]:
        """Return its `kind`, its only state."""
        return {"kind": "bytes"}


class CharacterTokenizer:
    """One token per character: a code point of Unicode, so an é made of e and an accent has two.

    The vocabulary is small, and only texts made of its characters can be read.

    Args:
        characters: the one of each token, all different.

    Attributes:
        vocab_size: how many characters it knows.

    Raises:
        ValueError: there are none, or one twice.
    """

    def __init__(self, characters: str) -> None:
        if not characters or len(set(characters)) != len(characters):
            raise ValueError("a character tokenizer needs characters, each of them once")
        self.characters = characters
        self.vocab_size = len(characters)
        self._tokens = {character: token for token, character in enumerate(characters)}

    @classmethod
    def train(cls, texts: Iterable[str]) -> CharacterTokenizer:
        """A tokenizer for the characters of these texts, in Unicode's order.

        Raises:
            ValueError: the texts have none.
        """
        return cls("".join(sorted(set().union(*texts))))

    def encode(self, text: str) -> list[int]:
        """Return one token per character.

        Raises:
            ValueError: the text it was made from did not have this character.
        """
        try:
            return [self._tokens[character] for character in text]
        except KeyError as error:
            unknown = error.args[0]
            raise ValueError(
                f"the tokenizer has no token for {unknown!r} (character {text.index(unknown)} of the text): "
                "train it on a text that has it, or use bytes or bpe, which can encode every text"
            ) from None

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the characters of these tokens."""
        return "".join(look_up(self.characters, tokens))

    def to_json(self) -> dict[str, Any]:
        """The characters, in the order of their tokens."""
        return {"kind": "characters", "characters": self.characters}


def to_utf8(text: str) -> bytes:
    """The text's bytes.

    Raises:
        ValueError: it has half of a surrogate pair, which Python allows in a str and UTF-8 has no bytes for.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise ValueError(f"character {error.start} of the text, {half}, is half of a surrogate pair") from None


def look_up(vocab: Sequence[Text], tokens: Sequence[int]) -> list[Text]:
    """The characters or bytes of every token.

    Raises:
        ValueError: there is no such token. (A list would take a negative one from its end.)
    """
    if wrong := [token for token in tokens if not 0 <= token < len(vocab)]:
        raise ValueError(f"there is no token {wrong[0]}: the vocabulary has 0 to {len(vocab) - 1}")
    return [vocab[token] for token in tokens]
