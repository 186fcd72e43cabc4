"""A package has the right functions, and writing it does not lose manual changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import find_chapter
from lmcourse.models.zoo import find_model
from lmcourse.own_package.modules import PARTS, Collection, merged_imports
from lmcourse.own_package.saved_answers import Answer, Notebook, printed_notebooks, read_notebook
from lmcourse.own_package.weights import package_config
from lmcourse.own_package.write import RECORD, check_name, package_files, write_files

FILES = {"a.py": b"a = 1\n", "deep/b.bin": b"\x00\xff"}
WRONG = "def glu_ffn(x, w_gate, w_value, w_down, kind):\n    return torch.where(x > 0, x, 0) @ w_down"


def contents(out: Path) -> dict[str, bytes]:
    paths = (path for path in out.rglob("*") if path.is_file() and path.name != RECORD)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def test_export_replaces_and_removes_its_own_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert write_files(FILES, out) == ["a.py", "deep/b.bin"]
    assert contents(out) == FILES
    assert write_files(FILES, out) == []
    newer = {"a.py": b"a = 2\n", "c.py": b""}
    assert write_files(newer, out) == ["a.py", "c.py"]
    assert contents(out) == newer


@pytest.mark.parametrize("files", [FILES | {"a.py": b"a = 2\n"}, {"deep/b.bin": b"new"}])
def test_nothing_is_written_if_a_file_was_changed_by_hand(files: dict[str, bytes], tmp_path: Path) -> None:
    """This holds for files that would be replaced or removed."""
    out = tmp_path / "out"
    write_files(FILES, out)
    (out / "a.py").write_text("mine = 1\n")
    with pytest.raises(CourseError, match=r"^a\.py in .* changed after lmcourse package wrote it: .*--force$"):
        write_files(files, out)
    assert contents(out) == FILES | {"a.py": b"mine = 1\n"}
    write_files(files, out, force=True)
    assert contents(out) == files


def test_other_files_in_the_package_folder_are_kept(tmp_path: Path) -> None:
    write_files(FILES, tmp_path)
    (tmp_path / "mine.py").write_text("mine = 1\n")
    write_files({"a.py": b""}, tmp_path)
    assert contents(tmp_path) == {"a.py": b"", "mine.py": b"mine = 1\n"}


def test_a_full_disk_leaves_the_old_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(FILES, tmp_path)
    newer = {"a.py": b"a = 2\n", "deep/b.bin": b"new"}
    whole = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "b.bin":
            raise OSError(28, "No space left on device", str(target))
        return whole(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(CourseError, match="cannot be written: No space left on device"):
            write_files(newer, tmp_path)
    assert contents(tmp_path) == FILES
    assert write_files(newer, tmp_path) == ["a.py", "deep/b.bin"]


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(CourseError, match="is a file: choose another folder"):
        write_files(FILES, tmp_path / "out")


def collection(course: Path, state: Any, *, lend: bool) -> Collection:
    """Return notebook 11 with only `glu_ffn` in this state; its answer is wrong."""
    chapter = find_chapter("11")
    printed = printed_notebooks([find_chapter(number) for number in set(PARTS.values())], course)
    own = {chapter: type(printed[chapter])(("import torch\n" + WRONG,), {"glu_ffn": 0}, frozenset({"glu_ffn"}))}
    return Collection([Answer(chapter, "glu_ffn", state, "0 of 3 points" * (state == "wrong"))], own, printed, lend)


def test_a_wrong_answer_is_replaced_or_included(course: Path) -> None:
    chapter = find_chapter("11")
    replaced = collection(course, "wrong", lend=True).parts[chapter]["glu_ffn"]
    assert (replaced.origin, replaced.reason) == ("course", "0 of 3 points")
    kept = collection(course, "wrong", lend=False)
    assert kept.parts[chapter]["glu_ffn"].origin == "yours"
    assert "torch.where" in package_files("mine", kept)["feed_forward.py"].decode()


def test_a_missing_answer_without_a_replacement_raises_when_called(course: Path) -> None:
    names: dict[str, Any] = {}
    text = package_files("mine", collection(course, "missing", lend=False))["parts.py"].decode()
    exec(text, names)
    with pytest.raises(NotImplementedError, match="glu_ffn of notebook 11 is left out: not answered"):
        names["PARTS"]["glu_ffn"](1, 2)


def test_helpers_of_an_answer_come_in_notebook_order(course: Path) -> None:
    """`causal_attention` passes and calls `causal_mask`, which is wrong, so the course's version replaces it."""
    chapter = find_chapter("08")
    printed = printed_notebooks([find_chapter(number) for number in set(PARTS.values())], course)
    wrong = Answer(chapter, "causal_mask", "wrong", "0 of 2 points")
    found = Collection([Answer(chapter, "causal_attention", "passes"), wrong], {chapter: printed[chapter]}, printed)
    assert [(part.exercise, part.origin) for part in found.ordered(chapter)] == [
        ("causal_mask", "course"),
        ("causal_attention", "yours"),
        ("grouped_query_attention", "course"),
    ]


@pytest.mark.parametrize("name", ["my-model", "class", "json", "torch", "lmcourse", "2nd"])
def test_an_impossible_package_name_is_rejected(name: str) -> None:
    with pytest.raises(CourseError, match=name):
        check_name(name)


def test_imports_are_merged_and_sorted() -> None:
    lines = ["from b import y", "import torch", "from b import x", "import math", "import torch", "from math import pi"]
    assert merged_imports(lines) == "import math\nfrom math import pi\nimport torch\nfrom b import x, y"


def test_a_model_of_another_style_has_no_package() -> None:
    for name in ("gpt-2", "gemma-2-9b", "llama-3.1-405b"):
        with pytest.raises(ValueError, match="this model"):
            package_config(find_model(name).decoder)


def test_the_first_of_two_copies_of_an_answer_counts(tmp_path: Path) -> None:
    mark = {"nbgrader": {"solution": True, "grade_id": "x"}}
    check = nbformat.v4.new_code_cell("check(y)", metadata={"nbgrader": {"grade": True, "grade_id": "check_y"}})
    cells = [
        nbformat.v4.new_code_cell(text, metadata=mark if "x" in text else {}) for text in ("y = 0", "x = 1", "x = 2")
    ]
    page = tmp_path / "page.ipynb"
    for chosen, places, asked in (([], {}, ""), (cells, {"x": 1}, "x"), ([*cells, check], {"x": 1}, "xy")):
        nbformat.write(nbformat.v4.new_notebook(cells=chosen), page)
        assert read_notebook(page) == Notebook(tuple(cell.source for cell in chosen), places, frozenset(asked))
