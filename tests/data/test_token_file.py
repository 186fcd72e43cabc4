"""Compare token files with NumPy's reading of their bytes, and reject broken files in one line."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.base.errors import CourseError
from lmcourse.data import token_file
from lmcourse.data.token_file import TokenFile, write_tokens

VOCABULARIES = st.sampled_from([1, 2, 65, 255, 256, 2**16 - 1, 2**16, 2**16 + 1, 50_257, 2**31, 2**32])


@given(data=st.data(), vocab_size=VOCABULARIES)
@settings(deadline=None, max_examples=60)
def test_a_written_token_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, vocab_size: int
) -> None:
    chunks = data.draw(st.lists(st.lists(st.integers(0, vocab_size - 1), max_size=9), min_size=1, max_size=5))
    expected = [token for chunk in chunks for token in chunk] or [vocab_size - 1]
    path = tmp_path_factory.mktemp("tokens") / "text.tokens"
    mixed = [np.array(chunk, np.int64) if n % 2 else chunk for n, chunk in enumerate(chunks)]
    assert write_tokens(path, mixed if any(chunks) else [expected], vocab_size) == len(expected)
    part = data.draw(st.slices(len(expected)))
    with TokenFile(path) as tokens:
        assert (tokens.count, tokens.vocab_size, tokens.tokenizer) == (len(expected), vocab_size, None)
        assert len(tokens) == len(expected)
        assert tokens[:].dtype == torch.int64
        assert tokens[:].tolist() == expected
        assert tokens[part].tolist() == expected[part]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, "<u2"), (2**16 + 1, "<u4")])
def test_the_bytes_match_the_documented_format(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    tokenizer = {"kind": "characters", "characters": "añ\udc80𝄞"}
    write_tokens(path := tmp_path / "a.tokens", [[1, 2, 258], [vocab_size - 1]], vocab_size, tokenizer)
    head = path.read_bytes()
    magic, version, width, count, words, length = struct.unpack("<8sIIQQQ", head[:40])
    assert (magic, version, width, count, words) == (b"LMTOKENS", 1, np.dtype(dtype).itemsize, 4, vocab_size)
    assert json.loads(head[40 : 40 + length]) == tokenizer
    start = (40 + length + 63) // 64 * 64
    assert head[40 + length : start].strip() == b""
    assert np.fromfile(path, dtype, offset=start).tolist() == [1, 2, 258, vocab_size - 1]
    assert TokenFile(path).tokenizer == tokenizer


def test_chunk_sizes_do_not_change_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "WRITE_CHUNK_TOKENS", 7)
    write_tokens(tmp_path / "a", [range(20), np.arange(20, 21, dtype=np.uint8), range(21, 50)], 50)
    assert TokenFile(tmp_path / "a")[:].tolist() == list(range(50))
    with pytest.raises(ValueError, match="token 50 at position 50 is not in a vocabulary of 50"):
        write_tokens(tmp_path / "a", [range(20), range(20, 60)], 50)


def test_memory_does_not_grow_with_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 2 million tokens, 16 MB as int64: once in many chunks, and once in a single file."""
    monkeypatch.setattr(token_file, "WRITE_CHUNK_TOKENS", 2**14)
    np.memmap(tmp_path / "raw", np.int64, "w+", shape=2_000_000).flush()
    for chunks in ((np.zeros(10_000, np.int64) for _ in range(200)), [np.memmap(tmp_path / "raw", np.int64, "r")]):
        tracemalloc.start()
        write_tokens(tmp_path / "a", chunks, 9)
        _, written = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with TokenFile(tmp_path / "a") as tokens:
            assert tokens[1_000_000:1_000_100].tolist() == [0] * 100
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert max(written, peak) < 1_000_000


def refused_chunks() -> dict[str, tuple[list[Any], str]]:
    return {
        "too large": ([[0, 1], [2, 5, 6]], "token 5 at position 3 is not in a vocabulary of 5"),
        "negative": ([np.array([-1], np.int8)], "token -1 at position 0 is not in a vocabulary of 5"),
        "beyond int64": ([[2**64 - 1]], "token 18446744073709551615 at position 0"),
        "fractions": ([[0.5]], "a chunk is a row of integers, not float64"),
        "truth": ([[True]], "a chunk is a row of integers, not bool"),
        "a table": ([[[1, 2]]], r"a chunk is a row of integers, not int64 of shape \(1, 2\)"),
        "nothing": ([[], []], "there are no tokens to write"),
    }


@pytest.mark.parametrize("name", refused_chunks())
def test_invalid_tokens_are_rejected_and_the_old_file_stays(tmp_path: Path, name: str) -> None:
    chunks, message = refused_chunks()[name]
    write_tokens(path := tmp_path / "a", [[3]], 5)
    with pytest.raises(ValueError, match=message) as caught:
        write_tokens(path, chunks, 5)
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert TokenFile(path)[:].tolist() == [3]


@pytest.mark.parametrize("vocab_size", [0, -3, 2**32 + 1])
def test_a_vocabulary_that_does_not_fit_is_rejected(tmp_path: Path, vocab_size: int) -> None:
    with pytest.raises(ValueError, match=f"not {vocab_size}"):
        write_tokens(tmp_path / "a", [[0]], vocab_size)


def test_a_token_file_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "a", list[list[bytes]]()
    fsync = os.fsync

    def watched(file: int) -> None:
        fsync(file)
        seen.append([entry.read_bytes() for entry in tmp_path.iterdir() if entry != path])

    monkeypatch.setattr(os, "fsync", watched)
    write_tokens(path, [[1, 2, 3]], 5)
    assert seen == [[path.read_bytes()]]


def broken_files() -> dict[str, tuple[bytes, str]]:
    def header(magic: bytes = b"LMTOKENS", version: int = 1, width: int = 2, count: int = 3, length: int = 4) -> bytes:
        return struct.pack("<8sIIQQQ", magic, version, width, count, 9, length) + b"null"

    tokens = bytes(20 + 6)
    return {
        "foreign": (b"From: somebody\n" * 9, "not a token file"),
        "empty": (b"", "not a token file"),
        "newer": (header(version=2) + tokens, "has format 2, but this code reads format 1"),
        "cut in its header": (header()[:30], "ends in its header"),
        "longer": (header() + tokens + b"\0", "has 71 bytes and should have 70"),
        "no such width": (header(width=3) + tokens, "damaged header"),
        "no tokens": (header(count=0) + tokens, "damaged header"),
        "endless": (header(length=2**63) + tokens, "it was cut off or changed"),
        "no JSON": (header().replace(b"null", b"nul\xff") + tokens, "damaged tokenizer"),
    }


@pytest.mark.parametrize("name", broken_files())
def test_an_incomplete_file_is_rejected(tmp_path: Path, name: str) -> None:
    content, message = broken_files()[name]
    (path := tmp_path / "a").write_bytes(content)
    with pytest.raises(CourseError, match=message) as caught:
        TokenFile(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_truncated_token_file_is_rejected(tmp_path: Path) -> None:
    write_tokens(path := tmp_path / "a", [range(30)], 50, {"kind": "bytes"})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CourseError, match=r"cut off|not a token file"):
            TokenFile(path)


def test_a_file_that_cannot_be_read_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="nothing cannot be read: No such file"):
        TokenFile(tmp_path / "nothing")


def mapped() -> str:
    """Return the files that this process has mapped, if the system reports them."""
    maps = Path("/proc/self/maps")
    return maps.read_text(encoding="utf-8") if maps.exists() else ""


def test_a_closed_file_is_released(tmp_path: Path) -> None:
    """Otherwise Windows could not replace or remove it. Tensors from the file stay valid."""
    write_tokens(path := tmp_path / "a.tokens", [range(5)], 5)
    with TokenFile(path) as tokens:
        part = tokens[1:4]
    assert str(path) not in mapped()
    path.unlink()
    assert part.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="was closed: open it again"):
        tokens[:2]
