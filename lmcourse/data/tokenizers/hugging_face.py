"""The file format of Hugging Face's `tokenizers`: tokenizer.json, which most tools can read.

In that file a byte is a visible character: 188 of them stand for themselves, the other 68 (blanks, control characters,
…) for the characters from U+0100 on, in order (Radford et al., 2019, `bytes_to_unicode` of GPT-2's code). A token is
the string of its bytes' characters, and a merge two tokens. Words are cut by our rule (`pre_tokenizer`).

A file is read if it says just that with token i for byte i and 256 + i for merge i: what this module writes, and what
`tokenizers` makes of it when it saves. Other files are refused, because their tokens would be other ones here.

Bytes are byte pairs without a merge. Characters are whole words ("WordLevel") of one character each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmcourse.data.tokenizer import Tokenizer
from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.data.tokenizers.bytes import BYTES, ByteTokenizer
from lmcourse.data.tokenizers.characters import CharacterTokenizer
from lmcourse.data.tokenizers.load import load_tokenizer
from lmcourse.data.tokenizers.pre_tokenizer import PATTERN
from lmcourse.errors import CourseError

_VISIBLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
BYTE_CHARACTERS = [chr(byte if byte in _VISIBLE else 256 + _HIDDEN.index(byte)) for byte in range(256)]
"""The character of each byte."""

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
_WORDS = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
_PRE_TOKENIZER = {"type": "Sequence", "pretokenizers": [_WORDS, _BYTE_LEVEL]}
_CHARACTER = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
_UNKNOWN = "<unknown>"
"""What the format wants for unknown words. It is no token here, so their library refuses such words as ours does."""
_UNUSED = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")


def to_hugging_face(tokenizer: Tokenizer) -> dict[str, Any]:
    """The contents of a tokenizer.json.

    Raises:
        CourseError: the format has no such tokenizers.
    """
    if isinstance(tokenizer, CharacterTokenizer):
        vocab = {character: token for token, character in enumerate(tokenizer.characters)}
        return _file({"type": "WordLevel", "vocab": vocab, "unk_token": _UNKNOWN}, _CHARACTER, {"type": "Fuse"})
    if isinstance(tokenizer, ByteTokenizer):
        return _byte_pairs(BPETokenizer([]))
    if isinstance(tokenizer, BPETokenizer):
        return _byte_pairs(tokenizer)
    raise CourseError(f"A tokenizer.json has no place for a {type(tokenizer).__name__}.")


def _byte_pairs(tokenizer: BPETokenizer) -> dict[str, Any]:
    names = _names(tokenizer)
    model = {
        "type": "BPE",
        **dict.fromkeys(_UNUSED),
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {name: token for token, name in enumerate(names)},
        "merges": [[names[left], names[right]] for left, right in tokenizer.merges],
    }
    return _file(model, _PRE_TOKENIZER, _BYTE_LEVEL)


def _file(model: dict[str, Any], pre_tokenizer: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """A whole tokenizer.json, without special tokens and changes of the text."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def from_hugging_face(saved: Mapping[str, Any]) -> BPETokenizer:
    """The byte pairs of the contents of a tokenizer.json.

    Raises:
        CourseError: it is none, or its tokens would be other ones here; the message says why.
    """
    try:
        model = saved["model"]
        tokens, merges = model["vocab"], [_pair(each) for each in model["merges"]]
        made = BPETokenizer([(tokens[left], tokens[right]) for left, right in merges])
        _check(saved, made)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CourseError(f"This is no tokenizer.json of byte pairs: {type(error).__name__}, {error}.") from None
    fast = load_tokenizer(made.to_json())
    return fast if isinstance(fast, BPETokenizer) else made


def _names(tokenizer: BPETokenizer) -> list[str]:
    """Each token as the characters of its bytes."""
    return ["".join(BYTE_CHARACTERS[byte] for byte in raw) for raw in tokenizer.token_bytes]


def _pair(merge: Any) -> tuple[str, str]:
    """A merge: two strings, or, in files of before 2024, one with a blank between them."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _check(saved: Mapping[str, Any], made: BPETokenizer) -> None:
    """Refuse what would make other tokens of some text than `made` does."""
    model = saved["model"]
    settings = [*(model.get(name) for name in (*_UNUSED, "byte_fallback", "ignore_merges"))]
    if model["type"] != "BPE" or any(settings):
        raise CourseError("The course reads tokenizer.json files of plain byte pairs; this one has another model.")
    if saved.get("added_tokens") or saved.get("normalizer") or saved.get("post_processor"):
        raise CourseError("This tokenizer.json has special tokens or changes the text; the course's tokenizers do not.")
    if saved["pre_tokenizer"] != _PRE_TOKENIZER:
        raise CourseError("This tokenizer.json cuts words by another rule than the course's, so its tokens are others.")
    if model["vocab"] != {name: token for token, name in enumerate(_names(made))}:
        raise CourseError(
            f"This tokenizer.json numbers its tokens otherwise. Here 0 to {len(BYTES) - 1} are the bytes, and the "
            f"merges follow in their order."
        )


def _characters(saved: Mapping[str, Any]) -> CharacterTokenizer:
    """The character tokenizer of the contents of a tokenizer.json.

    Raises:
        CourseError: it is none that `to_hugging_face` has made.
    """
    try:
        vocab = saved["model"]["vocab"]
        made = CharacterTokenizer("".join(sorted(vocab, key=vocab.__getitem__)))
        same = json.loads(json.dumps(saved)) == to_hugging_face(made)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CourseError(f"This is no tokenizer.json of characters: {type(error).__name__}, {error}.") from None
    if not same:
        raise CourseError("The course reads whole words only if each is one character; this tokenizer.json has others.")
    return made


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer.json; it appears under its name when it is whole.

    Raises:
        CourseError: the format has no such tokenizers.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        text = json.dumps(to_hugging_face(tokenizer), indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file: a tokenizer.json of `tokenizers`, or one that a run of the course has saved.

    Raises:
        CourseError: it cannot be read, or is neither.
    """
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        saved = None
    if not isinstance(saved, dict):
        raise CourseError(f"{path} holds no tokenizer: it is no JSON object")
    try:
        if "model" not in saved:
            return load_tokenizer(saved)
        words = isinstance(saved["model"], dict) and saved["model"].get("type") == "WordLevel"
        return _characters(saved) if words else from_hugging_face(saved)
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None
