"""A package is written without losing what was changed in it by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.collect.files import RECORD, formatted, write_files
from lmcourse.errors import CourseError

FILES = {"a.py": b"a = 1\n", "deep/b.bin": b"\x00\xff"}


def contents(out: Path) -> dict[str, bytes]:
    paths = (path for path in out.rglob("*") if path.is_file() and path.name != RECORD)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def test_what_was_written_may_be_written_again_and_what_is_not_wanted_goes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert write_files(FILES, out) == ["a.py", "deep/b.bin"]
    assert contents(out) == FILES
    assert write_files(FILES, out) == []
    newer = {"a.py": b"a = 2\n", "c.py": b""}
    assert write_files(newer, out) == ["a.py", "c.py"]
    assert contents(out) == newer


@pytest.mark.parametrize("files", [FILES | {"a.py": b"a = 2\n"}, {"deep/b.bin": b"new"}])
def test_what_was_changed_by_hand_stays_and_nothing_is_written(files: dict[str, bytes], tmp_path: Path) -> None:
    """Whether it is to be replaced or removed."""
    out = tmp_path / "out"
    write_files(FILES, out)
    (out / "a.py").write_text("mine = 1\n")
    with pytest.raises(CourseError, match=r"^a\.py in .* changed since lmcourse collect wrote it: .*--force$"):
        write_files(files, out)
    assert contents(out) == FILES | {"a.py": b"mine = 1\n"}
    write_files(files, out, force=True)
    assert contents(out) == files


def test_a_file_that_nobody_collected_is_somebodys(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("mine = 1\n")
    with pytest.raises(CourseError, match=r"a\.py"):
        write_files(FILES, tmp_path)
    assert contents(tmp_path) == {"a.py": b"mine = 1\n"}


def test_a_file_of_ones_own_beside_them_is_left_alone(tmp_path: Path) -> None:
    write_files(FILES, tmp_path)
    (tmp_path / "mine.py").write_text("mine = 1\n")
    write_files({"a.py": b""}, tmp_path)
    assert contents(tmp_path) == {"a.py": b"", "mine.py": b"mine = 1\n"}


def test_a_call_that_was_cut_off_is_not_taken_for_work_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(FILES, tmp_path)
    newer = {"a.py": b"a = 2\n", "deep/b.bin": b"new"}
    whole = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "b.bin":
            raise OSError(28, "No space left on device")
        return whole(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(CourseError, match="cannot be written: No space left on device"):
            write_files(newer, tmp_path)
    assert (tmp_path / "a.py").read_bytes() == newer["a.py"]
    assert write_files(newer, tmp_path) == ["deep/b.bin"]
    assert {name: content for name, content in contents(tmp_path).items() if ".new" not in name} == newer


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(CourseError, match="is a file: choose another folder"):
        write_files(FILES, tmp_path / "out")


def test_python_is_formatted_and_nothing_else() -> None:
    assert formatted({"deep/a.py": b"x = {'a':1}\n", "b.txt": b"x = {'a':1}\n", "c.py": b"def (\n"}) == {
        "deep/a.py": b'x = {"a": 1}\n',
        "b.txt": b"x = {'a':1}\n",
        "c.py": b"def (\n",
    }
