"""Tokenizers for bytes, characters and byte pairs (`tokenizer`, `bpe`), and their files (`tokenizer_json`)."""

from __future__ import annotations

from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.data.tokenizers.tokenizer import ByteTokenizer, CharacterTokenizer, Tokenizer
from lmcourse.data.tokenizers.tokenizer_json import (
    LibraryTokenizer,
    load_tokenizer,
    open_any_tokenizer,
    open_tokenizer,
    save_tokenizer,
)

__all__ = [
    "BPETokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "LibraryTokenizer",
    "Tokenizer",
    "load_tokenizer",
    "open_any_tokenizer",
    "open_tokenizer",
    "save_tokenizer",
]
