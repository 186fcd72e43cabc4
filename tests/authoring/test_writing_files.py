"""Two files are written together: both or neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return two files in two folders, of which the first exists."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_text("old")
    return tmp_path / "a" / "one", tmp_path / "b" / "two"


def test_files_have_the_same_bytes_on_every_system(pair: tuple[Path, Path], tmp_path: Path) -> None:
    write_all(dict(zip(pair, ("new\n", "é\n"), strict=True)))
    assert [path.read_bytes() for path in pair] == [b"new\n", "é\n".encode()]
    assert set(contents(tmp_path)) == {"a/one", "b/two"}


@pytest.mark.parametrize("blocked", ["b", "b/two"], ids=["no folder", "no file"])
def test_a_target_that_cannot_be_written_changes_no_file(blocked: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
    if blocked == "b":
        (tmp_path / "b").write_text("a file, where a folder should be")
    else:
        (tmp_path / "b/two/folder").mkdir(parents=True)
    before = contents(tmp_path)
    with pytest.raises(CourseError, match=rf"/{blocked} cannot be written: "):
        write_all(dict.fromkeys((pair[0], tmp_path / "c" / "three", pair[1]), "new"))
    assert contents(tmp_path) == before


def test_an_interruption_between_two_moves_leaves_whole_files(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair[1].parent.mkdir()
    pair[1].write_text("old")
    replace = Path.replace

    def stop(self: Path, target: Path) -> Path:
        if target == pair[1]:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_all(dict.fromkeys(pair, "new"))
    assert contents(tmp_path) == {"a/one": "new", "b/two": "old"}
