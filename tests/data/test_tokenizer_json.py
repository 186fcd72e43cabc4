"""The library `tokenizers` reads our files with the same tokens, and we read its files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given, settings

from lmcourse.base.errors import CourseError
from lmcourse.data.corpora import find_corpus
from lmcourse.data.tokenizers import BPETokenizer, ByteTokenizer, open_any_tokenizer, save_tokenizer
from lmcourse.data.tokenizers.tokenizer_json import from_hugging_face, to_hugging_face
from tests.data.texts import ENGLISH, EVERY, ODD


@pytest.fixture(scope="module")
def ours() -> BPETokenizer:
    return BPETokenizer.train([*ENGLISH, "東京 é é 😀😀"], 600)


@pytest.fixture(scope="module")
def theirs(ours: BPETokenizer, tmp_path_factory: pytest.TempPathFactory) -> tokenizers.Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    save_tokenizer(ours, path)
    assert [each.name for each in path.parent.iterdir()] == ["tokenizer.json"]
    return tokenizers.Tokenizer.from_file(str(path))


@given(text=EVERY)
@example(text=ODD)
@settings(deadline=None)
def test_the_tokenizers_library_gives_our_tokens_and_texts(
    ours: BPETokenizer, theirs: tokenizers.Tokenizer, text: str
) -> None:
    tokens = ours.encode(text)
    assert theirs.encode(text).ids == tokens
    assert theirs.decode(tokens, skip_special_tokens=False) == text
    assert theirs.get_vocab_size() == ours.vocab_size


def test_a_tokenizer_saved_by_the_tokenizers_library_is_the_same(
    ours: BPETokenizer, theirs: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    theirs.save(str(tmp_path / "theirs.json"))
    again = open_any_tokenizer(tmp_path / "theirs.json")
    assert isinstance(again, BPETokenizer)
    assert again.merges == ours.merges
    assert again.encode(ODD) == ours.encode(ODD)


def test_merges_in_the_older_format_are_read(ours: BPETokenizer) -> None:
    saved = to_hugging_face(ours)
    saved["model"]["merges"] = [" ".join(pair) for pair in saved["model"]["merges"]]
    assert from_hugging_face(saved).merges == ours.merges


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    saved = copy.deepcopy(to_hugging_face(BPETokenizer([(97, 98)])))
    change(saved)
    return saved


OTHER: list[Callable[[dict[str, Any]], object]] = [
    lambda saved: saved["model"].update(type="Unigram"),
    lambda saved: saved["model"].update(dropout=0.1),
    lambda saved: saved["model"].update(ignore_merges=True),
    lambda saved: saved.update(added_tokens=[{"id": 257, "content": "<|endoftext|>"}]),
    lambda saved: saved.update(normalizer={"type": "NFC"}),
    lambda saved: saved.update(pre_tokenizer={"type": "Whitespace"}),
    lambda saved: saved["model"]["vocab"].update({"a": 98, "b": 97}),
    lambda saved: saved["model"]["vocab"].update(zz=300),
    lambda saved: saved["model"]["merges"].append(["a", "zz"]),
    lambda saved: saved["model"].pop("merges"),
    lambda saved: saved.update(model=None),
]


@pytest.mark.parametrize("change", OTHER)
def test_tokenizer_files_with_other_tokens_are_not_ours(change: Callable[[dict[str, Any]], object]) -> None:
    assert from_hugging_face(changed(change)) is None


def test_saved_tokenizers_open_and_other_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(ByteTokenizer().to_json()), encoding="utf-8")
    assert isinstance(open_any_tokenizer(path), ByteTokenizer)
    for content in ("[]", "{", "3"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(CourseError, match=r"run\.json is damaged"):
            open_any_tokenizer(path)
    with pytest.raises(CourseError, match="cannot be read"):
        open_any_tokenizer(tmp_path / "missing.json")


def test_the_courses_text_matches_the_recorded_counts() -> None:
    (text,) = find_corpus("course-text").texts()
    assert list(find_corpus("course-text").texts()) == [text]
    assert 90_000 < len(text.encode()) < 110_000
    assert "BEGIN SOLUTION" not in text
