"""Wrong ways to read tokens from a raw file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def _fits(path: str, start: int, count: int, width: int) -> None:
    if width not in (2, 4) or min(start, count) < 0 or (start + count) * width > Path(path).stat().st_size:
        raise ValueError("there are no such tokens")


def _mapped(path: str, start: int, count: int, dtype: str, offset: int | None = None) -> Tensor:
    width = np.dtype(dtype).itemsize
    with Path(path).open("rb") as file:
        file.seek(start * width if offset is None else offset)
        return torch.from_numpy(np.frombuffer(file.read(count * width), dtype).astype(np.int64))


def writes_through(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """mode="r+", the default, and no copy."""
    _fits(path, start, count, bytes_each)
    return torch.from_numpy(np.memmap(path, f"<u{bytes_each}")[start : start + count])


def signed(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """int16 and int32."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, f"<i{bytes_each}")


def always_four(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """As far as the file reaches."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, "<u4")


def always_two(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """Half of each token of four bytes."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, "<u2")


def offset_in_tokens(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """seek(start)."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, f"<u{bytes_each}", offset=start)


def as_npy(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """np.load, which wants a header."""
    return torch.from_numpy(np.load(path)[start : start + count].astype(np.int64))


def big_end_first(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """>u2."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, f">u{bytes_each}")


def shorter(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """What is left of the file."""
    with Path(path).open("rb") as file:
        file.seek(start * bytes_each)
        raw = file.read(count * bytes_each)
    return torch.from_numpy(np.frombuffer(raw, f"<u{bytes_each}").astype(np.int64))


def whole_file(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """All of it, then a slice."""
    _fits(path, start, count, bytes_each)
    text = np.fromfile(path, f"<u{bytes_each}").astype(np.int64)
    return torch.from_numpy(text[start : start + count].copy())


def dtype_kept(path: str, start: int, count: int, bytes_each: int) -> Tensor:
    """uint16."""
    _fits(path, start, count, bytes_each)
    return _mapped(path, start, count, f"<u{bytes_each}").to(torch.uint16 if bytes_each == 2 else torch.uint32)


WRONG_READING: tuple[tuple[str, Callable[..., Tensor]], ...] = (
    (
        "Your tensor is the file, dtype and all: writing into it changed what is on the disk. Return a copy.",
        writes_through,
    ),
    ("Read as signed numbers, tokens above 32,767 become negative. They are unsigned.", signed),
    ("You always read four bytes: two tokens of two bytes become one.", always_four),
    ("You always read two bytes: a token of four becomes two.", always_two),
    ("You skip `start` bytes. `start` counts tokens, and each has several bytes.", offset_in_tokens),
    ("np.load wants a header. The file is raw: nothing but numbers, whatever its name says.", as_npy),
    ("Your bytes are in the wrong order. The little end comes first.", big_end_first),
    ("Fewer tokens than asked for are an error, or a batch would have a short row. Raise ValueError.", shorter),
    ("You read the whole file for a few tokens. A corpus may be larger than the memory.", whole_file),
    ("You keep the file's dtype. An embedding asks for int64.", dtype_kept),
)
