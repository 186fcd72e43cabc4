"""Token files: a tokenized corpus on disk, memory-mapped.

    bytes 0-7     b"LMTOKENS"
    8-11          format version, 1
    12-15         bytes per token, 2 or 4
    16-23         number of tokens
    24-31         vocab_size
    32-39         bytes of JSON that follow: the tokenizer, or null
    40-           JSON, spaces up to a multiple of 64, tokens

All numbers are unsigned and little endian. A token takes two bytes if the vocabulary is small enough, otherwise four.
The operating system loads only the pages that are read and drops them again, so a file may be larger than the memory.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from lmcourse.base.errors import CourseError

MAGIC = b"LMTOKENS"
VERSION = 1
HEADER_STRUCT = struct.Struct("<8sIIQQQ")
ALIGNMENT = 64


@dataclass(frozen=True)
class Header:
    """The numbers at the start of a file: bytes per token, tokens, size of the vocabulary, bytes of JSON."""

    width: int
    count: int
    vocab_size: int
    json: int

    @property
    def start(self) -> int:
        """The offset of the first token in bytes."""
        return -(-(HEADER_STRUCT.size + self.json) // ALIGNMENT) * ALIGNMENT

    @property
    def size(self) -> int:
        """The size of the whole file in bytes."""
        return self.start + self.count * self.width

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The data type of a token in the file."""
        return np.dtype(f"<u{self.width}")

    def pack(self) -> bytes:
        """Return the header as the bytes in the file."""
        return HEADER_STRUCT.pack(MAGIC, VERSION, self.width, self.count, self.vocab_size, self.json)


def read_header(path: Path) -> tuple[Header, dict[str, Any] | None]:
    """Read the header and the tokenizer of a file; raise CourseError if it is damaged or not a token file."""
    try:
        with path.open("rb") as file:
            header = _parse(file.read(HEADER_STRUCT.size), path)
            size = path.stat().st_size
            text = file.read(min(header.json, size))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    if size != header.size:
        raise CourseError(
            f"{path} has {size:,} bytes and should have {header.size:,}: it was cut off or changed; "
            "create the file again"
        )
    try:
        tokenizer: dict[str, Any] | None = json.loads(text)
    except ValueError:
        raise CourseError(f"{path} has a damaged tokenizer: create the file again") from None
    return header, tokenizer


def _parse(start: bytes, path: Path) -> Header:
    if not start.startswith(MAGIC):
        raise CourseError(f"{path} is not a token file")
    if len(start) < HEADER_STRUCT.size:
        raise CourseError(f"{path} ends in its header: it was cut off; create the file again")
    _, version, *numbers = HEADER_STRUCT.unpack(start)
    if version != VERSION:
        raise CourseError(
            f"{path} has format {version}, but this code reads format {VERSION}: update it or make the file again"
        )
    header = Header(*numbers)
    if header.width not in (2, 4) or header.count < 1:
        raise CourseError(f"{path} has a damaged header: create the file again")
    return header


WRITE_CHUNK_TOKENS = 2**20
"""Number of tokens that are checked and written at once."""

Chunk = Sequence[int] | NDArray[np.integer[Any]]


def write_tokens(path: Path, chunks: Iterable[Chunk], vocab_size: int, tokenizer: dict[str, Any] | None = None) -> int:
    """Write a token file, chunk by chunk. It gets its name only when it is completely on the disk.

    Raises ValueError if a token is not in the vocabulary, or there are no tokens.

    Args:
        path: the file; an existing file is replaced.
        chunks: the tokens, in any number of parts.
        vocab_size: size of the vocabulary, at most 2³².
        tokenizer: the result of the tokenizer's `to_json`, with which the file can be decoded.

    Returns:
        The number of tokens written.
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
    """Write the tokens and count them. Long chunks are divided, because a chunk may be a huge memory-mapped file."""
    count = 0
    for chunk in chunks:
        for start in range(0, len(chunk), WRITE_CHUNK_TOKENS):
            array = np.asarray(chunk[start : start + WRITE_CHUNK_TOKENS])
            _check(array, header.vocab_size, count)
            file.write(array.astype(header.dtype).tobytes())
            count += len(array)
    if not count:
        raise ValueError("there are no tokens to write")
    return count


def _check(array: NDArray[Any], vocab_size: int, before: int) -> None:
    """Check that the numbers are tokens; `before` is the number of tokens already checked."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"a chunk is a row of integers, not {array.dtype} of shape {array.shape}")
    wrong = np.flatnonzero((array < 0) | (array >= vocab_size))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"token {array[at]} at position {before + at} is not in a vocabulary of {vocab_size}")


class TokenFile:
    """The tokens of a file, as a sequence whose slices are tensors.

    `tokens[a:b]` is an int64 tensor; only these tokens are read. Windows cannot replace an open file, so close it, or
    use it in a `with` block. A file that is missing, cut off or not a token file of this version raises CourseError.

    Attributes:
        path: the file.
        count: number of tokens.
        vocab_size: size of the vocabulary; tokens are 0 to vocab_size − 1.
        tokenizer: the JSON of the tokenizer that made the tokens; None if it was not stored.
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
        # Copy only these tokens, so that no tensor keeps the file open.
        return torch.from_numpy(np.asarray(self._tokens[part]).astype(np.int64))

    def close(self) -> None:
        """Close the file."""
        self._tokens = None

    def __enter__(self) -> TokenFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
