"""Load a tokenizer from what its `to_json` gave."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from lmcourse.data.tokenizer import Tokenizer
from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.data.tokenizers.bytes import ByteTokenizer
from lmcourse.data.tokenizers.characters import CharacterTokenizer
from lmcourse.data.tokenizers.fast_bpe import FastBPETokenizer
from lmcourse.errors import CourseError


def load_tokenizer(saved: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that was saved. Byte pairs are fast where a library for it is installed; the tokens are the same.

    Raises:
        CourseError: this is no saved tokenizer.
    """
    try:
        match saved["kind"]:
            case "bytes":
                return ByteTokenizer()
            case "characters":
                return CharacterTokenizer(saved["characters"])
            case "bpe":
                fast = find_spec("tiktoken") or find_spec("tokenizers")
                return (FastBPETokenizer if fast else BPETokenizer)(saved["merges"])
            case other:
                raise CourseError(f"There is no tokenizer of the kind {other!r}, only bytes, characters and bpe.")
    except (KeyError, TypeError, ValueError) as error:
        raise CourseError(f"This is no tokenizer that the course has saved: {type(error).__name__}, {error}.") from None
