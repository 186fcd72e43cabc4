"""Right ways to read tokens from a raw file, as learners might write them."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def with_seek(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """File methods and int.from_bytes."""
    if bytes_each not in (2, 4) or start < 0 or count < 0:
        raise ValueError("no such tokens")
    with Path(path).open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        if (start + count) * bytes_each > end:
            raise ValueError("the file is too short")
        file.seek(start * bytes_each)
        found = [int.from_bytes(file.read(bytes_each), "little") for _ in range(count)]
    return torch.tensor(found, dtype=torch.int64)


def with_fromfile(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """NumPy's fromfile, which reads no more than it is asked for."""
    if bytes_each != 2 and bytes_each != 4:
        raise ValueError("two or four bytes")
    if start < 0 or count < 0 or start * bytes_each > Path(path).stat().st_size:
        raise ValueError("no such tokens")
    kind = np.uint16 if bytes_each == 2 else np.uint32
    found = np.fromfile(path, dtype=kind, count=count, offset=start * bytes_each)
    if len(found) < count:
        raise ValueError("the file is too short")
    return torch.tensor(found.astype("int64"))


def with_a_map(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """The mmap module, and shifts of bytes."""
    if bytes_each not in {2, 4}:
        raise ValueError("two or four bytes")
    first, last = start * bytes_each, (start + count) * bytes_each
    if first < 0 or last < first or last > Path(path).stat().st_size:
        raise ValueError("no such tokens")
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        raw = torch.tensor(list(text[first:last]), dtype=torch.int64).reshape(count, bytes_each)
    return (raw << (8 * torch.arange(bytes_each))).sum(dim=1)


def with_memmap(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """A map of all tokens, of which a slice is copied."""
    widths = {2: "<u2", 4: "<u4"}
    if bytes_each not in widths:
        raise ValueError("two or four bytes")
    text = np.memmap(path, dtype=widths[bytes_each], mode="r")
    if not 0 <= start <= start + count <= len(text):
        raise ValueError("no such tokens")
    return torch.from_numpy(np.array(text[start : start + count], dtype=np.int64))


RIGHT_READING = (with_seek, with_fromfile, with_a_map, with_memmap)
