"""What lies beside a notebook, before nbgrader copies it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmcourse.grading.intake.files import remove_links
from tests.grading.tiny_course import ASSIGNMENT, NAME


def test_links_and_pipes_go_and_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # as nbgrader does; its paths may be relative
    folder = Path("submitted", "bob", ASSIGNMENT)
    (folder / "data").mkdir(parents=True)
    secret = tmp_path / "secret.txt"
    secret.write_text("an answer")
    for name in ("notes.txt", "data/deep.txt"):
        (folder / name).write_text("mine")
        (folder / f"{name}.link").symlink_to(secret)
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "nowhere").symlink_to("nowhere")
    (folder / "others").symlink_to(tmp_path)
    os.mkfifo(folder / "timestamp.txt")
    (folder / NAME).symlink_to(secret)
    remove_links(assignment=ASSIGNMENT, student="*", notebooks=[str(folder / NAME)])
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert left == {NAME, "notes.txt", "data", "data/deep.txt"}
    assert secret.read_text() == "an answer"


def test_nothing_is_removed_behind_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "alice"
    theirs.mkdir()
    (theirs / "link").symlink_to("nowhere")
    (tmp_path / "bob").symlink_to(theirs)
    remove_links(assignment=ASSIGNMENT, student="bob", notebooks=[str(tmp_path / "bob" / NAME)])
    assert (theirs / "link").is_symlink()
