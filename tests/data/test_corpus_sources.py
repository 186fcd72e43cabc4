"""Test the sources of the named corpora."""

from __future__ import annotations

import hashlib
import sysconfig
import tokenize
from itertools import islice
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.data import corpus_sources
from lmcourse.data.downloads import Download
from lmcourse.data.grammar import story_grammar


def test_the_synthetic_corpus_has_the_known_entropy() -> None:
    for text in islice(corpus_sources.stories(), 20):
        assert story_grammar().log_probability(text) < 0
    assert list(corpus_sources.stories(3, seed=1)) != list(corpus_sources.stories(3))
    assert len(set(corpus_sources.stories(3))) == 3


def test_the_help_topics_match_help() -> None:
    from pydoc_data.topics import topics

    assert set(corpus_sources.python_docs()) == set(topics.values())


def test_python_code_contains_the_library_but_no_tests() -> None:
    texts = set(corpus_sources.python_code())
    with tokenize.open(tokenize.__file__) as file:
        assert file.read() in texts
    assert Path(hashlib.__file__).read_text(encoding="utf-8") in texts
    assert Path(pytest.__file__).read_text(encoding="utf-8") not in texts


def test_downloaded_corpora_have_the_expected_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test uses existing files; downloads have separate tests."""
    path = tmp_path / "stories.txt"
    path.write_text("\nOne day.\n<|endoftext|>\nTwo days.\n<|endoftext|>\n\n")
    asked: list[Download] = []
    monkeypatch.setattr(corpus_sources, "fetch", lambda download: asked.append(download) or path)
    assert list(corpus_sources.tiny_stories()) == ["One day.", "Two days."]
    assert list(corpus_sources.tiny_shakespeare()) == [path.read_text()]
    assert asked == [corpus_sources.TINY_STORIES, corpus_sources.TINY_SHAKESPEARE]


def library(folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    """Replace Python's standard library by these files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(folder)}.__getitem__)


def test_modules_are_read_in_the_encoding_that_they_declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latin = "# coding: latin-1\n'café'\n"
    others = {"test/broken.py": b"\xff", "site-packages/other.py": b"other", "data.txt": b"text", "empty.py": b""}
    library(tmp_path, monkeypatch, {"latin.py": latin.encode("latin-1"), **others})
    assert list(corpus_sources.python_code()) == [latin]


def test_a_python_without_sources_or_help_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(tmp_path, monkeypatch, {"module.pyc": b"compiled"})
    with pytest.raises(CourseError, match="no sources of Python's standard library"):
        corpus_sources.python_code()

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(corpus_sources, "import_module", missing)
    with pytest.raises(CourseError, match="without its help topics"):
        corpus_sources.python_docs()
