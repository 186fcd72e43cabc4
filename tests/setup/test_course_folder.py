"""A wheel's notebooks are copied to a learner's folder without overwriting the learner's work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.course import root
from lmcourse.grading.notebooks import fingerprint
from lmcourse.jupyter import course_folder as carried
from lmcourse.jupyter.course_folder import course_folder

PLACE = Path("notebooks", "01-floating-point", "floating_point.ipynb")


def notebook(text: str, handed_out: str = "") -> str:
    """Return a notebook with one cell, and the hash of its released text."""
    import nbformat

    cells = [nbformat.v4.new_code_cell(handed_out or text, id="answer")]
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["lmcourse"] = {"cells": fingerprint(made), "chapter": "01-floating-point"}
    made.cells[0].source = text
    return str(nbformat.writes(made))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The notebooks of a wheel."""
    folder = tmp_path / "installed" / "course_folder"
    (folder / PLACE).parent.mkdir(parents=True)
    (folder / PLACE).write_text(notebook("raise NotImplementedError"), encoding="utf-8")
    (folder / root.ROOT_MARKER).write_text("c = get_config()\n", encoding="utf-8")
    return folder


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, outside any clone."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(carried, "find_root", lambda named: root.find_root(named, checkout=folder))
    return folder


def test_an_empty_folder_becomes_the_course(wheel: Path, empty: Path) -> None:
    assert course_folder(carried=wheel) == empty
    assert root.is_root(empty)
    assert (empty / PLACE).read_bytes() == (wheel / PLACE).read_bytes()
    assert not [*empty.rglob(".*.new")]


def test_a_subfolder_finds_the_same_course(wheel: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course_folder(carried=wheel)
    monkeypatch.chdir(empty / "notebooks")
    assert course_folder(carried=wheel) == empty
    assert not (empty / "notebooks" / "notebooks").exists()


def test_a_named_folder_is_created(wheel: Path, empty: Path) -> None:
    assert course_folder(empty / "new", carried=wheel) == empty / "new"
    assert (empty / "new" / PLACE).is_file()
    assert not (empty / "notebooks").exists()


def test_notebooks_with_work_stay_and_others_are_updated(
    wheel: Path, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course_folder(carried=wheel)
    (wheel / PLACE).write_text(notebook("raise NotImplementedError  # newer"), encoding="utf-8")
    course_folder(carried=wheel)
    assert "newer" in (empty / PLACE).read_text(encoding="utf-8")
    mine = notebook("return 42", handed_out="raise NotImplementedError  # newer")
    (empty / PLACE).write_text(mine, encoding="utf-8")
    course_folder(carried=wheel)
    assert capsys.readouterr().out == "", "nothing is out of date"
    (wheel / PLACE).write_text(notebook("raise NotImplementedError  # newest"), encoding="utf-8")
    course_folder(carried=wheel)
    assert (empty / PLACE).read_text(encoding="utf-8") == mine
    assert capsys.readouterr().out == f"{PLACE} holds your work and stays; the installed course has a newer one.\n"


@pytest.mark.parametrize("text", ["", "not JSON", json.dumps({"cells": [], "metadata": {}, "nbformat": 4})])
def test_a_foreign_notebook_counts_as_work(wheel: Path, empty: Path, text: str) -> None:
    course_folder(carried=wheel)
    (empty / PLACE).write_text(text, encoding="utf-8")
    course_folder(carried=wheel)
    assert (empty / PLACE).read_text(encoding="utf-8") == text


def test_outputs_of_an_unanswered_notebook_stay(wheel: Path, empty: Path) -> None:
    course_folder(carried=wheel)
    ran = json.loads((empty / PLACE).read_text(encoding="utf-8"))
    ran["cells"][0]["execution_count"] = 3
    (empty / PLACE).write_text(json.dumps(ran), encoding="utf-8")
    course_folder(carried=wheel)
    assert json.loads((empty / PLACE).read_text(encoding="utf-8")) == ran


def test_a_missing_notebook_is_copied_again(wheel: Path, empty: Path) -> None:
    course_folder(carried=wheel)
    shutil.move(empty / PLACE, empty / "mine.ipynb")
    course_folder(carried=wheel)
    assert (empty / PLACE).read_bytes() == (wheel / PLACE).read_bytes()


def test_other_notebooks_in_the_folder_are_not_changed(wheel: Path, empty: Path) -> None:
    (empty / "notebooks").mkdir()
    with pytest.raises(CourseError, match=r"contains other files\. Run `lmcourse lab` in an empty folder"):
        course_folder(carried=wheel)
    assert [*empty.rglob("*")] == [empty / "notebooks"]


def test_a_clone_keeps_its_own_notebooks(wheel: Path, empty: Path) -> None:
    (empty / "solutions").mkdir()
    (empty / root.ROOT_MARKER).touch()
    assert course_folder(carried=wheel) == empty
    assert not (empty / "notebooks").exists()


def test_without_a_wheel_the_course_is_found_or_reported(empty: Path) -> None:
    with pytest.raises(CourseError, match="There is no course in this folder"):
        course_folder(carried=empty / "absent")


def test_a_folder_that_cannot_be_written_is_reported_in_one_line(wheel: Path, empty: Path) -> None:
    (empty / "file").touch()
    with pytest.raises(CourseError, match="cannot be written"):
        course_folder(empty / "file" / "below", carried=wheel)


@pytest.mark.parametrize("command", [["grade", "notebooks/01-floating-point"], ["package"]])
def test_commands_that_need_a_clone_say_so_in_one_line(
    wheel: Path, empty: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    course_folder(carried=wheel)
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "in a clone" in line
