"""Tokenizers: `bytes`, `characters`, and byte pairs, plain (`bpe`) and fast (`fast_bpe`).

`load` makes a tokenizer again from what `to_json` gave; `hugging_face` reads and writes tokenizer.json;
`library` reads the tokenizer.json of any model, where Hugging Face's `tokenizers` is installed.
"""

from __future__ import annotations

from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.data.tokenizers.bytes import ByteTokenizer
from lmcourse.data.tokenizers.characters import CharacterTokenizer
from lmcourse.data.tokenizers.fast_bpe import FastBPETokenizer
from lmcourse.data.tokenizers.hugging_face import open_tokenizer, save_tokenizer
from lmcourse.data.tokenizers.load import load_tokenizer

__all__ = [
    "BPETokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "FastBPETokenizer",
    "load_tokenizer",
    "open_tokenizer",
    "save_tokenizer",
]
