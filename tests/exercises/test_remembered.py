"""Predictions are remembered beside the notebook in JupyterLab, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmcourse.exercises.prediction import predict
from lmcourse.exercises.remembered import FILE, recall, remember
from lmcourse.widgets import Choice

NAME = "numbers_per_binade"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a notebook that is open in JupyterLab; the kernel's folder has changed since."""
    folder = tmp_path / "01-floating-point"
    folder.mkdir()
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "floating_point.ipynb"))
    monkeypatch.chdir(tmp_path)
    return folder / FILE


def choose(option: str) -> None:
    question = predict(NAME)
    assert isinstance(question, Choice)
    next(button for button in question.buttons if button.description == option).click()


def verdict() -> str:
    question = predict(NAME)
    assert isinstance(question, Choice)
    return str(question.verdict.value)


def test_a_new_kernel_shows_the_choice_with_its_verdict(file: Path) -> None:
    choose("256")
    remember("other", "0.5")
    assert "You chose “256”. The answer: 128." in verdict()
    assert json.loads(file.read_text()) == {NAME: "256", "other": "0.5"}
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("session", [None, "", "floating_point.ipynb", "/no/such/folder/floating_point.ipynb"])
def test_without_an_open_notebook_nothing_is_read_or_written(
    file: Path, session: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    if session is None:
        monkeypatch.delenv("JPY_SESSION_NAME")
    else:
        monkeypatch.setenv("JPY_SESSION_NAME", session)
    choose("256")
    assert not file.exists()
    file.write_text(json.dumps({NAME: "256"}))
    assert verdict() == ""
    choose("128")
    assert json.loads(file.read_text()) == {NAME: "256"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[1]",
        b"[" * 100_000,
        b'{"numbers_per_binade": ["256"]}',
        b'{"numbers_per_binade": "<script>"}',
        b'{"\\ud800": "\\ud800", "x": 1e999}',
    ],
    ids=range(8),
)
def test_a_damaged_file_is_ignored_and_then_replaced(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert verdict() == ""
    choose("256")
    assert recall(NAME) == "256"


def test_a_file_that_cannot_be_written_changes_nothing(file: Path) -> None:
    file.mkdir()
    choose("256")
    assert verdict() == ""
    assert [*file.parent.iterdir()] == [file]
