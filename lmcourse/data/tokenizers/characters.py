"""Character tokenizer, a token per character of the training text: a small vocabulary, and nothing else can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lmcourse.data.tokenizers.lookup import look_up


class CharacterTokenizer:
    """One token per character: a code point of Unicode, so an é made of e and an accent has two.

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
        """A token per character.

        Raises:
            ValueError: the text it was made from did not have this character.
        """
        try:
            return [self._tokens[character] for character in text]
        except KeyError as error:
            unknown = error.args[0]
            raise ValueError(
                f"the tokenizer does not know {unknown!r} (character {text.index(unknown)} of the text): "
                "make it from a text that has it, or use bytes or bpe, which know every text"
            ) from None

    def decode(self, tokens: Sequence[int]) -> str:
        """The characters.

        Raises:
            ValueError: there is no such token.
        """
        return "".join(look_up(self.characters, tokens))

    def to_json(self) -> dict[str, Any]:
        """The characters, in the order of their tokens."""
        return {"kind": "characters", "characters": self.characters}
