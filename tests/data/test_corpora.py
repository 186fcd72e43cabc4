"""Corpora have texts in a fixed order, leave out or report other files, and have a fixed split."""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.base.errors import CourseError
from lmcourse.data.corpora import CORPORA, Corpus, find_corpus, split


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus("some", lambda: iter(texts))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name, content in {
        "b.txt": b"second\r\n",
        "a.md": "first ☕\n".encode(),
        "b/deep/c": b"third",
        "empty.txt": b"",
        "picture.png": b"\x89PNG\0\0",
        ".hidden": b"hidden",
        ".git/config": b"hidden",
    }.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", ["synthetic", "python-docs", "python-code"])
def test_every_corpus_without_a_download_has_text(name: str) -> None:
    corpus = find_corpus(name)
    texts = list(islice(corpus.texts(), 50))
    assert len(texts) == 50
    assert all(texts)
    assert list(islice(corpus.texts(), 50)) == texts, "the same order every time"
    assert corpus.name == name


@pytest.mark.parametrize("home", [False, True])
def test_a_file_is_one_document(home: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "plays.txt"
    path.write_bytes(b"line\r\nline\n")
    corpus = find_corpus("~/plays.txt" if home else str(path))
    assert list(corpus.texts()) == ["line\r\nline\n"]


def test_a_folder_is_one_document_per_file(folder: Path) -> None:
    corpus = find_corpus(str(folder))
    assert list(corpus.texts()) == ["first ☕\n", "third", "second\r\n"]


def test_a_circular_link_is_not_followed(folder: Path) -> None:
    (folder / "b" / "round").symlink_to(folder)
    assert len(list(find_corpus(str(folder)).texts())) == 3


def test_bytes_that_are_not_utf8_are_reported(folder: Path) -> None:
    (folder / "latin.txt").write_bytes("naïf et ".encode() + "café".encode("latin-1"))
    with pytest.raises(CourseError, match=r"latin\.txt is not UTF-8: byte 0xe9 at offset 12\.") as error:
        list(find_corpus(str(folder)).texts())
    assert "\n" not in str(error.value)


def test_a_deleted_file_is_reported(folder: Path) -> None:
    corpus = find_corpus(str(folder))
    (folder / "b.txt").unlink()
    with pytest.raises(CourseError, match=r"b\.txt cannot be read: No such file"):
        list(corpus.texts())


def test_an_unreadable_folder_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def guarded(path: str) -> Any:
        if path == str(folder / "b"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(CourseError, match="b cannot be read: Permission denied"):
        find_corpus(str(folder))


def test_a_folder_without_text_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="has no files"):
        find_corpus(str(tmp_path))
    (tmp_path / "zero.bin").write_bytes(b"\0")
    with pytest.raises(CourseError, match="has no text: 1 of its 1 files are binary"):
        find_corpus(str(tmp_path))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tinyshakespeare", "Did you mean 'tiny-shakespeare'"),
        ("Python-Doc", "Did you mean 'python-docs' or 'python-code'"),
        ("qqq", "There are synthetic, course-text, python-docs, python-code, tiny-shakespeare, tinystories"),
        ("", "There are synthetic"),
    ],
)
def test_an_unknown_corpus_suggests_a_similar_name(spec: str, message: str) -> None:
    with pytest.raises(CourseError, match=message):
        find_corpus(spec)


def test_a_name_comes_before_a_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "synthetic").write_text("a file")
    monkeypatch.chdir(folder)
    assert find_corpus("synthetic") is CORPORA["synthetic"]
    assert list(find_corpus("./synthetic").texts()) == ["a file"]


texts = st.lists(st.text(min_size=1), min_size=1, max_size=40)


@given(texts=texts, held_out=st.floats(0.01, 0.99))
@settings(deadline=None)
def test_a_split_holds_out_whole_documents(texts: list[str], held_out: float) -> None:
    train, validation = (list(part.texts()) for part in split(corpus_of(texts), held_out))
    if len(set(texts)) == 1:
        assert [a + b for a, b in zip(train, validation, strict=True)] == texts
        return
    assert train
    assert validation
    assert sorted(train + validation) == sorted(texts)
    assert not set(train) & set(validation), "a copy on both sides"
    assert [text for text in texts if text in set(train)] == train, "the order is kept"
    assert abs(len(set(validation)) - held_out * len(set(texts))) <= 1


def test_a_split_does_not_change() -> None:
    """The test computes the documents with the smallest SHA-256 itself."""
    every = [str(number) for number in range(100)]
    smallest = sorted(every, key=lambda text: hashlib.sha256(text.encode()).hexdigest())[:10]
    train, validation = split(corpus_of(every), 0.1)
    assert set(validation.texts()) == set(smallest)
    assert list(validation.texts()) == list(validation.texts())
    assert (train.name, validation.name) == ("some (train)", "some (validation)")


def test_the_end_of_a_single_document_is_held_out() -> None:
    train, validation = split(corpus_of(["0123456789"]), 0.2)
    assert list(train.texts()) == ["01234567"]
    assert list(validation.texts()) == ["89"]


def test_an_impossible_split_is_rejected() -> None:
    for held_out in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            split(corpus_of(["a", "b"]), held_out)
    with pytest.raises(CourseError, match="has no text"):
        split(corpus_of([]))
