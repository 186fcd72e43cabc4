"""The tokenizer interface, and the two tokenizers without merges: bytes and characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

Text = TypeVar("Text", str, bytes)

BYTES = tuple(bytes([value]) for value in range(256))


class Tokenizer(Protocol):
    """Converts text to tokens and back: `decode(encode(text)) == text` for every text that it can encode.

    Attributes:
        vocab_size: number of tokens; ids are 0 to vocab_size − 1.
    """

    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text.

        Raises ValueError if the text has a character without a token, or half a character (a lone surrogate).
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these tokens; raise ValueError if one does not exist. Half characters become U+FFFD."""

    def to_json(self) -> dict[str, Any]:
        """Return everything that is needed to rebuild the tokenizer, with its `kind`."""


class ByteTokenizer:
    """A tokenizer with 256 tokens, the bytes: one per letter in English, three per character in Chinese.

    Example:
        >>> ByteTokenizer().encode("naïve")
        [110, 97, 195, 175, 118, 101]
    """

    vocab_size = len(BYTES)

    def encode(self, text: str) -> list[int]:
        """Return the bytes of the text in UTF-8."""
        return list(to_utf8(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(look_up(BYTES, tokens)).decode(errors="replace")

    def to_json(self) -> dict[str, Any]:
        """Return the `kind`, which is all that is needed."""
        return {"kind": "bytes"}


class CharacterTokenizer:
    """A tokenizer with one token per character (code point), so an é that consists of e and an accent has two.

    The vocabulary is small, and only texts with its characters can be encoded.

    Args:
        characters: the character of each token, all different, of which there are `vocab_size`.
    """

    def __init__(self, characters: str) -> None:
        if not characters or len(set(characters)) != len(characters):
            raise ValueError("a character tokenizer needs at least one character, and no character twice")
        self.characters = characters
        self.vocab_size = len(characters)
        self._tokens = {character: token for token, character in enumerate(characters)}

    @classmethod
    def train(cls, texts: Iterable[str]) -> CharacterTokenizer:
        """Return a tokenizer for the characters of these texts, in Unicode order."""
        return cls("".join(sorted(set().union(*texts))))

    def encode(self, text: str) -> list[int]:
        """Return one token per character; raise ValueError if a character is not in the vocabulary."""
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
        """Return the kind and the characters, in the order of their tokens."""
        return {"kind": "characters", "characters": self.characters}


def to_utf8(text: str) -> bytes:
    """Return the UTF-8 bytes of a text.

    Half of a surrogate pair, which a Python str may contain but UTF-8 cannot encode, raises ValueError.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise ValueError(f"character {error.start} of the text, {half}, is half of a surrogate pair") from None


def look_up(vocab: Sequence[Text], tokens: Sequence[int]) -> list[Text]:
    """Return the characters or bytes of every token.

    A token that does not exist raises ValueError, and so does a negative number, which would index from the end.
    """
    if wrong := [token for token in tokens if not 0 <= token < len(vocab)]:
        raise ValueError(f"there is no token {wrong[0]}: the vocabulary has 0 to {len(vocab) - 1}")
    return [vocab[token] for token in tokens]
