"""The header of a token file: what it holds, and whether it is complete.

    bytes 0-7     b"LMTOKENS"
    8-11          format version, 1
    12-15         bytes per token, 2 or 4
    16-23         tokens
    24-31         vocab_size
    32-39         bytes of JSON that follow: the tokenizer, or null
    40-           JSON, spaces up to a multiple of 64, tokens

All numbers are unsigned and little endian.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
    """The header and the tokenizer of a file that may be anything.

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
        raise CourseError(f"{path} is no token file: `write_tokens` makes one")
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
