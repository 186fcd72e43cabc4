"""Save and load tokenizers: the course's own JSON, and tokenizer.json of Hugging Face's `tokenizers`.

A tokenizer.json writes each byte as a visible character. 188 bytes stand for themselves; the other 68 (spaces, control
characters, …) are written as the characters from U+0100 on, in order (Radford et al., 2019, `bytes_to_unicode` in
GPT-2's code). A token is the string of its bytes' characters, and a merge is two tokens. Text is split into words by
our rule (`pre_tokenizer`).

Our tokenizers read only files in this form, with token i for byte i and token 256 + i for merge i: files that this
module has written, and files that `tokenizers` saves from them. In other files tokens have other numbers, so
`LibraryTokenizer` reads them with the library `tokenizers`.

A byte tokenizer is stored as byte pairs without merges. A character tokenizer is stored as words ("WordLevel") of one
character each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json
from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.data.tokenizers.pre_tokenizer import PATTERN
from lmcourse.data.tokenizers.tokenizer import ByteTokenizer, CharacterTokenizer, Tokenizer

_VISIBLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
BYTE_CHARACTERS = [chr(byte if byte in _VISIBLE else 256 + _HIDDEN.index(byte)) for byte in range(256)]
"""The character that stands for each byte."""

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
_WORDS = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
_PRE_TOKENIZER = {"type": "Sequence", "pretokenizers": [_WORDS, _BYTE_LEVEL]}
_CHARACTER = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
_UNKNOWN = "<unknown>"
"""Value of the format's field for unknown words. It is not a token, so the library rejects unknown words, as our
tokenizer does.
"""
_UNUSED = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError)
"""Exceptions that JSON with an unexpected structure may cause."""


def load_tokenizer(saved: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer from the result of `to_json`; raise CourseError if the value is something else."""
    try:
        match saved["kind"]:
            case "bytes":
                return ByteTokenizer()
            case "characters":
                return CharacterTokenizer(saved["characters"])
            case "bpe":
                return BPETokenizer(saved["merges"])
            case "library":
                return LibraryTokenizer(saved["tokenizer"])
            case other:
                raise CourseError(f"There is no tokenizer of kind {other!r}, only bytes, characters and bpe.")
    except _DAMAGED as error:
        raise CourseError(f"This is not a tokenizer that the course saved: {type(error).__name__}, {error}.") from None


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer.json; the file gets its name only when it is complete.

    A tokenizer that the format does not support, or a file that cannot be written, raises CourseError.
    """
    write_all({path: json.dumps(to_hugging_face(tokenizer), indent=2, ensure_ascii=False) + "\n"})


def open_any_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer from a file: a tokenizer.json, or a file that a run of the course has saved.

    A tokenizer.json becomes the course's own tokenizer if possible, otherwise a `LibraryTokenizer`. A file that cannot
    be read, or that has another format, raises CourseError.
    """
    saved = read_json(path)
    if not {"model", "kind"} & saved.keys():
        raise CourseError(f"{path} cannot be read: it contains no tokenizer")
    try:
        return (from_hugging_face(saved) or LibraryTokenizer(saved)) if "model" in saved else load_tokenizer(saved)
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None


def to_hugging_face(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the contents of a tokenizer.json, without special tokens or changes of the text."""
    if isinstance(tokenizer, LibraryTokenizer):
        return tokenizer.content
    if isinstance(tokenizer, CharacterTokenizer):
        vocab = {character: token for token, character in enumerate(tokenizer.characters)}
        model: dict[str, Any] = {"type": "WordLevel", "vocab": vocab, "unk_token": _UNKNOWN}
        around: dict[str, object] = {"pre_tokenizer": _CHARACTER, "decoder": {"type": "Fuse"}}
    elif isinstance(tokenizer, ByteTokenizer | BPETokenizer):
        pairs = tokenizer if isinstance(tokenizer, BPETokenizer) else BPETokenizer([])
        model, around = _byte_pairs(pairs), {"pre_tokenizer": _PRE_TOKENIZER, "decoder": _BYTE_LEVEL}
    else:
        raise CourseError(f"A tokenizer.json cannot store a {type(tokenizer).__name__}.")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        **around,
        "model": model,
    }


def _byte_pairs(tokenizer: BPETokenizer) -> dict[str, Any]:
    names = _names(tokenizer)
    return {
        "type": "BPE",
        **dict.fromkeys(_UNUSED),
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {name: token for token, name in enumerate(names)},
        "merges": [[names[left], names[right]] for left, right in tokenizer.merges],
    }


def _names(tokenizer: BPETokenizer) -> list[str]:
    """Return each token as the characters of its bytes."""
    return ["".join(BYTE_CHARACTERS[byte] for byte in raw) for raw in tokenizer.token_bytes]


def from_hugging_face(saved: Mapping[str, Any]) -> BPETokenizer | CharacterTokenizer | None:
    """Return the course's tokenizer with the tokens of a tokenizer.json; None if it would make other tokens."""
    try:
        model, vocab = saved["model"], saved["model"]["vocab"]
        if model["type"] == "WordLevel":
            characters = CharacterTokenizer("".join(sorted(vocab, key=vocab.__getitem__)))
            return characters if saved == to_hugging_face(characters) else None
        # A merge is two strings; in files from before 2024 it is one string with a space between them.
        merges = [each.split(" ") if isinstance(each, str) else each for each in model["merges"]]
        pairs = BPETokenizer([(vocab[left], vocab[right]) for left, right in merges])
        as_ours = (
            model["type"] == "BPE"
            and not any(model.get(name) for name in (*_UNUSED, "byte_fallback", "ignore_merges"))
            and not any(saved.get(name) for name in ("added_tokens", "normalizer", "post_processor"))
            and saved["pre_tokenizer"] == _PRE_TOKENIZER
            and vocab == {name: token for token, name in enumerate(_names(pairs))}
        )
    except _DAMAGED:
        return None
    return pairs if as_ours else None


class LibraryTokenizer:
    """A tokenizer.json read by the library `tokenizers`, so that published models can generate text. Special tokens are
    added at the start of a text if the file says so, and left out of decoded text.

    Attributes:
        content: the content of the tokenizer.json.
        vocab_size: one more than the largest token, including special tokens.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        from tokenizers import Tokenizer as Library

        self.content = content
        try:
            self._tokenizer = Library.from_str(json.dumps(content))
        except Exception as error:  # the library raises no narrower exception
            raise CourseError(f"this tokenizer.json cannot be read: {str(error).splitlines()[0]}") from None
        # The file may ask for truncation or padding, for the model that it was made for.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.vocab_size = max(self._tokenizer.get_vocab().values(), default=-1) + 1
        if not self.vocab_size:
            raise CourseError("this tokenizer.json has no tokens")

    def encode(self, text: str) -> list[int]:
        """Return the text's tokens; raise ValueError if it has a character that the tokenizer does not know."""
        try:
            return list(self._tokenizer.encode(text).ids)
        except Exception as error:  # the library raises no narrower exception
            raise ValueError(f"tokenizer.json cannot cut this text into tokens: {error}") from None

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these tokens."""
        return str(self._tokenizer.decode(list(tokens)))

    def to_json(self) -> dict[str, Any]:
        """Return the whole content of the file, so that a run keeps its tokenizer."""
        return {"kind": "library", "tokenizer": self.content}
