"""Token files: a tokenized corpus on disk, memory-mapped.

    bytes 0-7     b"LMTOKENS"
    8-11          format version, 1
    12-15         bytes per token, 2 or 4
    16-23         tokens
    24-31         vocab_size
    32-39         bytes of JSON that follow: the tokenizer, or null
    40-           JSON, spaces up to a multiple of 64, tokens

All numbers are unsigned and little endian. A token has two bytes if the vocabulary allows, else four. The operating
system loads the pages that are looked at and drops them again, so a file may be larger than the memory.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from lmcourse.errors import CourseError

MAGIC = b"LMTOKENS"
VERSION = 1
HEADER_STRUCT = struct.Struct("<8sIIQQQ")
ALIGNMENT = 64


@dataclass(frozen=True)
class Header:
    """The numbers at the start of a file.

    Attributes:
        width: bytes per token.
        count: tokens.
        vocab_size: tokens are 0 to vocab_size − 1.
        json: bytes of the tokenizer's JSON.
    """

    width: int
    count: int
    vocab_size: int
    json: int

    @property
    def start(self) -> int:
        """Where the tokens begin, in bytes."""
        return -(-(HEADER_STRUCT.size + self.json) // ALIGNMENT) * ALIGNMENT

    @property
    def size(self) -> int:
        """Size of the whole file, in bytes."""
        return self.start + self.count * self.width

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """Data type of a token in the file."""
        return np.dtype(f"<u{self.width}")

    def pack(self) -> bytes:
        """The header's bytes, as in the file."""
        return HEADER_STRUCT.pack(MAGIC, VERSION, self.width, self.count, self.vocab_size, self.json)


def read_header(path: Path) -> tuple[Header, dict[str, Any] | None]:
    """Read the header and the tokenizer of a file that may be damaged.

    Raises:
        CourseError: it is no token file, not whole, or of another format.
    """
    try:
        with path.open("rb") as file:
            header = _parse(file.read(HEADER_STRUCT.size), path)
            size = path.stat().st_size
            text = file.read(min(header.json, size))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    if size != header.size:
        raise CourseError(
            f"{path} has {size:,} bytes and should have {header.size:,}: it was cut off or changed, make it again"
        )
    try:
        tokenizer: dict[str, Any] | None = json.loads(text)
    except ValueError:
        raise CourseError(f"{path} has a damaged tokenizer: make it again") from None
    return header, tokenizer


def _parse(start: bytes, path: Path) -> Header:
    if not start.startswith(MAGIC):
        raise CourseError(f"{path} is not a token file")
    if len(start) < HEADER_STRUCT.size:
        raise CourseError(f"{path} ends in its header: it was cut off, make it again")
    _, version, *numbers = HEADER_STRUCT.unpack(start)
    if version != VERSION:
        raise CourseError(
            f"{path} has format {version}, this code reads format {VERSION}: update it or make the file again"
        )
    header = Header(*numbers)
    if header.width not in (2, 4) or header.count < 1:
        raise CourseError(f"{path} has a damaged header: make it again")
    return header


WRITE_CHUNK_TOKENS = 2**20
"""Tokens that are checked and written at once."""

Chunk = Sequence[int] | NDArray[np.integer[Any]]


def write_tokens(path: Path, chunks: Iterable[Chunk], vocab_size: int, tokenizer: dict[str, Any] | None = None) -> int:
    """Write a token file, a chunk at a time. It appears under its name only when it is complete on the disk.

    Args:
        path: the file. One that is there already is replaced.
        chunks: the tokens, in as many parts as is convenient.
        vocab_size: how many different tokens there can be, at most 2³².
        tokenizer: what its `to_json` gives, so that the file can be turned back into text.

    Returns:
        How many tokens were written.

    Raises:
        ValueError: a token is not in the vocabulary, or there are no tokens.
    """
    if not 1 <= vocab_size <= 2**32:
        raise ValueError(f"a token file can have a vocabulary of 1 to 2³² tokens, not {vocab_size}")
    text = json.dumps(tokenizer).encode("ascii")
    header = Header(2 if vocab_size <= 2**16 else 4, 0, vocab_size, len(text))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with temporary.open("wb") as file:
            file.write((header.pack() + text).ljust(header.start))
            count = _write(file, chunks, header)
            file.seek(0)
            file.write(replace(header, count=count).pack())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _write(file: BinaryIO, chunks: Iterable[Chunk], header: Header) -> int:
    """Write the tokens and count them."""
    count = 0
    for array in _arrays(chunks):
        _check(array, header.vocab_size, count)
        file.write(array.astype(header.dtype).tobytes())
        count += len(array)
    if not count:
        raise ValueError("there are no tokens to write")
    return count


def _arrays(chunks: Iterable[Chunk]) -> Iterator[NDArray[Any]]:
    """The chunks as arrays, long ones in parts: a chunk may itself be a file as large as the disk."""
    for chunk in chunks:
        for start in range(0, len(chunk), WRITE_CHUNK_TOKENS):
            yield np.asarray(chunk[start : start + WRITE_CHUNK_TOKENS])


def _check(array: NDArray[Any], vocab_size: int, before: int) -> None:
    """Check that these are tokens. `before` tokens were fine."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"a chunk is a row of integers, not {array.dtype} of shape {array.shape}")
    wrong = np.flatnonzero((array < 0) | (array >= vocab_size))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"token {array[at]} at position {before + at} is not in a vocabulary of {vocab_size}")


class TokenFile:
    """The tokens of a file, as a sequence whose slices are tensors.

    `tokens[a:b]` is an int64 tensor that reads only those tokens. A file that is open cannot be replaced on Windows:
    close it, or use it in a `with`.

    Attributes:
        path: the file.
        count: how many tokens there are.
        vocab_size: they are 0 to vocab_size − 1.
        tokenizer: the JSON of the tokenizer that made them; None if nobody said.

    Raises:
        CourseError: there is no such file, it is no token file, it was cut off, or its format is newer than this code.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header, self.tokenizer = read_header(path)
        self.count, self.vocab_size = header.count, header.vocab_size
        self._tokens: NDArray[Any] | None = np.memmap(path, header.dtype, "r", header.start, (header.count,))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> Int[Tensor, " n"]:
        if self._tokens is None:
            raise ValueError(f"{self.path} was closed: open it again")
        # A copy, of these tokens only: no tensor then keeps the file open.
        return torch.from_numpy(np.asarray(self._tokens[part]).astype(np.int64))

    def close(self) -> None:
        """Close the file."""
        self._tokens = None

    def __enter__(self) -> TokenFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
