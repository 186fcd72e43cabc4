"""The tokenizer of `bpe`, trained and applied by libraries written in Rust.

Training is Hugging Face's `tokenizers`; encoding is OpenAI's `tiktoken`, or `tokenizers` again, many times slower,
where that is not installed. Merges and tokens are those of the plain one:

- `tokenizers` merges the commonest pair too, and of equally common ones the pair of smaller tokens, left before right;
  its alphabet is numbered in the order of the characters, and merges as they come (its trainer.rs). So that token i is
  byte i, it is given every byte as the character of the same number.
- `tiktoken` knows no merges, only ranks of byte strings: it joins the two neighbours that form the one of lowest rank.
  For merges that were learned from text that is the same, because each comes from one merge only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lmcourse.data.tokenizers.bpe import MIN_PAIR_COUNT, BPETokenizer, Pair
from lmcourse.data.tokenizers.bytes import BYTES
from lmcourse.data.tokenizers.lookup import to_utf8
from lmcourse.data.tokenizers.pre_tokenizer import PATTERN
from lmcourse.errors import CourseError

Encode = Callable[[str], list[int]]


class FastBPETokenizer(BPETokenizer):
    """Byte-level BPE tokenizer whose merges run in Rust.

    Raises:
        CourseError: neither `tiktoken` nor `tokenizers` is installed (to train, it must be `tokenizers`).
    """

    def __init__(self, merges: Sequence[Sequence[int]]) -> None:
        super().__init__(merges)
        self._encode = (
            _tiktoken(self.token_bytes) if find_spec("tiktoken") else _hugging_face(self.token_bytes, self.merges)
        )

    @staticmethod
    def _learn(texts: Iterable[str], merges: int) -> list[Pair]:
        library = _tokenizers()
        trainer = library.trainers.BpeTrainer(
            vocab_size=len(BYTES) + merges,
            min_frequency=MIN_PAIR_COUNT,
            initial_alphabet=[_characters(byte) for byte in BYTES],
            show_progress=False,
        )
        learner = _cutting_words(library.models.BPE())
        learner.train_from_iterator((_characters(to_utf8(text)) for text in texts), trainer)
        model = json.loads(learner.to_str())["model"]
        return [(model["vocab"][left], model["vocab"][right]) for left, right in model["merges"]]

    def encode(self, text: str) -> list[int]:
        """The text's tokens.

        Raises:
            ValueError: the text has half a character (a lone surrogate).
        """
        to_utf8(text)  # tiktoken would replace half a character without a word
        return self._encode(text)


def _tiktoken(token_bytes: Sequence[bytes]) -> Encode:
    ranks = {each: token for token, each in enumerate(token_bytes)}
    encoding = import_module("tiktoken").Encoding("course", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    encode: Encode = encoding.encode_ordinary
    return encode


def _hugging_face(token_bytes: Sequence[bytes], merges: Sequence[Pair]) -> Encode:
    named = [_characters(each) for each in token_bytes]
    vocab = {name: token for token, name in enumerate(named)}
    model = _tokenizers().models.BPE(vocab, [(named[left], named[right]) for left, right in merges])
    tokenizer = _cutting_words(model)
    return lambda text: list(tokenizer.encode(_characters(text.encode())).ids)


def _cutting_words(model: Any) -> Any:
    library = _tokenizers()
    tokenizer = library.Tokenizer(model)
    tokenizer.pre_tokenizer = library.pre_tokenizers.Split(library.Regex(PATTERN), behavior="isolated")
    return tokenizer


def _characters(raw: bytes) -> str:
    """Each byte as the character of the same number, in which form `tokenizers` can hold any bytes.

    Words are cut in the same places, because every byte of a character beyond ASCII counts as a letter as well.
    """
    return raw.decode("latin-1")


def _tokenizers() -> Any:
    if find_spec("tokenizers") is None:
        raise CourseError("Fast byte pairs need a library: pip install tokenizers (or take the plain BPETokenizer).")
    return import_module("tokenizers")
