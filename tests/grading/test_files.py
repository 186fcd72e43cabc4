"""Submitted files are read or rejected with a reason, and harmful zips are unpacked safely."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import os
import socket
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.base.unzip import MAX_FILE_BYTES, unpacked
from lmcourse.grading import files, notebooks
from lmcourse.grading.files import UnreadableError
from lmcourse.grading.notebooks import is_picture, read_submission

TITLE = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Title\n", "![p](attachment:p.png)"]}
ANSWER = {"cell_type": "code", "id": "ulp", "execution_count": 1, "source": "def ulp(x):\n    return 1"}
MARKS = {"nbgrader": {"grade_id": "ulp", "solution": True, "points": 2}}
PICTURES = {"p.png": {"image/png": "AAAA"}, "x.svg": {"image/svg+xml": "AAAA"}}
OUTPUT = {"output_type": "display_data", "data": {"text/html": ["<b>"]}, "metadata": {}}
KERNEL = {"name": "python3", "display_name": "Python 3"}
METADATA = {"kernelspec": KERNEL, "lmcourse": {"problem": ""}, "widgets": {"state": {}}}
RAW = {"cell_type": "raw", "id": "raw", "metadata": {}, "source": "<i>"}
CELLS = [{**TITLE, "attachments": PICTURES}, {**ANSWER, "metadata": MARKS, "outputs": [OUTPUT]}, RAW]
NOTEBOOK: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": CELLS}
SOUND = json.dumps(NOTEBOOK).encode()
TEXTS = ["# Title\n![p](attachment:p.png)", "def ulp(x):\n    return 1", "<i>"]


def places(node: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(child, (*here, key))


def changed(place: tuple[Any, ...], value: Any) -> bytes:
    """Return the notebook with another value in one place."""
    holder = {"notebook": copy.deepcopy(NOTEBOOK)}
    *path, last = ("notebook", *place)
    node: Any = holder
    for key in path:
        node = node[key]
    node[last] = value
    return json.dumps(holder["notebook"]).encode()


def written(folder: Path, data: bytes, name: str = "tiny.ipynb") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def problem(path: Path) -> str:
    with pytest.raises(UnreadableError) as caught:
        read_submission(path)
    told = str(caught.value)
    assert told.isprintable()
    assert told.endswith(".")
    assert len(told) < 300
    return told


def texts(path: Path) -> list[str]:
    return [cell.source for cell in read_submission(path).cells]


ODD = st.text(st.characters(exclude_categories=()), max_size=9) | st.sampled_from(["\ud800", "nbgrader", "ulp", "\0"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ODD | st.sampled_from([10**4000, 1e400])
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3))
CUTS = st.tuples(st.integers(0, len(SOUND)), st.binary(max_size=8), st.integers(0, 2000))
DAMAGED = CUTS.map(lambda cut: SOUND[: cut[0]] + cut[1] + SOUND[sum(cut[::2]) :])


@settings(max_examples=200, deadline=None)
@given(data=st.builds(changed, st.sampled_from([*places(NOTEBOOK)]), ANYTHING) | DAMAGED)
def test_any_file_is_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp(), data)
    try:
        notebook = read_submission(path)
    except UnreadableError:
        assert problem(path).startswith("tiny.ipynb ")
        return
    nbformat.validate(notebook)
    again = nbformat.reads(nbformat.writes(notebook).encode().decode(), as_version=4)
    assert [cell.source for cell in again.cells] == [cell.source for cell in notebook.cells]
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.filterwarnings("error")
def test_cells_keep_only_ids_marks_and_pictures(tmp_path: Path) -> None:
    said = {"text": "a", "number": 1, "list": ["a"], "deep": [["a"]], "dictionary": {"a": 1}, "nothing": None}
    kept = {"text": "a", "number": 1, "list": ["a"]}
    marks = json.loads(changed(("cells", 1, "metadata"), {"nbgrader": said, "tags": ["x"]}))
    marks["cells"].append(marks["cells"][1])
    title, answer, _, copied = read_submission(written(tmp_path, json.dumps(marks).encode())).cells
    assert (title["id"], answer["id"]) == ("title", "ulp")
    assert copied["id"] not in ("title", "ulp", "raw")
    assert answer.metadata == copied.metadata == {"nbgrader": kept}
    assert title.attachments == {"p.png": {"image/png": "AAAA"}}
    metadata = read_submission(written(tmp_path, changed(("metadata", "lmcourse"), said))).metadata
    assert metadata == {"lmcourse": kept, "kernelspec": KERNEL}
    assert not is_picture("image/png", "<script>")
    broken = [
        (("cells", 1, "outputs"), [{"data": 5}]),
        (("cells", 1, "id"), "an id with spaces"),
        (("metadata",), None),
    ]
    broken += [(("cells", 0, "attachments"), 5), (("nbformat_minor",), "99"), (("cells", 2, "cell_type"), ["x"])]
    for where, value in broken:
        assert texts(written(tmp_path, changed(where, value))) == TEXTS


def test_encodings_are_read(tmp_path: Path) -> None:
    text = json.dumps(json.loads(changed(("cells", 1, "source"), "# naïve 😀")), ensure_ascii=False)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        assert texts(written(tmp_path, text.encode(encoding)))[1] == "# naïve 😀"
    assert texts(written(tmp_path, changed(("cells", 1, "source"), "a\ud800")))[1] == "a?"


def cells_of(*sources: str) -> bytes:
    cells = [{"cell_type": "raw", "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "cells": cells}).encode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(bytes(10**7)), "cannot be read as a notebook"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html>", "is a web page. Hand in the notebook itself"),
        (b"%PDF-1.7", "is a PDF"),
        (b" \n", "it is empty"),
        (SOUND[:500], "it is cut off in line 1"),
        (b'{\n<<<<<<< HEAD\n"cells": []}', "a git merge conflict"),
        (b"import torch", "line 1 is not JSON"),
        ('{"é": 1}'.encode("latin-1"), "not UTF-8"),
        (b"[" * 100_000, "it lacks parts"),
        (b'{"nbformat": 1' + b"0" * 5000 + b"}", "cannot be read as a notebook"),
        (cells_of(5), "it lacks parts"),
        (b'{"nbformat": 5, "cells": []}', "has notebook format 5"),
        (b"[" + b"1," * notebooks.MAX_VALUES, "contains too much data. Clear its outputs"),
        (cells_of(*[""] * (notebooks.MAX_CELLS + 1)), "has more than 2,000 cells"),
        (cells_of("x" * notebooks.MAX_SOURCE_CHARS, "x"), "has more than 300,000 characters"),
    ],
)
def test_each_wrong_file_is_rejected_with_its_reason(tmp_path: Path, data: bytes, told: str) -> None:
    assert told in problem(written(tmp_path, data))


def test_files_at_the_limits_are_read(tmp_path: Path) -> None:
    assert len(texts(written(tmp_path, cells_of(*[""] * notebooks.MAX_CELLS)))) == notebooks.MAX_CELLS
    assert texts(written(tmp_path, cells_of("x" * notebooks.MAX_SOURCE_CHARS)))
    path = written(tmp_path, SOUND)
    os.truncate(path, MAX_FILE_BYTES)
    assert len(files.read_file(path)) == MAX_FILE_BYTES
    os.truncate(path, 2**40)
    assert "is larger than 50 MB" in problem(path)


def make_socket(path: Path) -> None:
    # a socket's path has at most 100 characters
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        *((lambda path, to=to: path.symlink_to(to), "is a link") for to in ("/etc/passwd", "tiny.ipynb")),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: os.mkfifo(path), "is not an ordinary file"),
        (make_socket, "cannot be opened (No such device"),
        (lambda path: None, "cannot be opened (No such file"),
    ],
)
def test_only_ordinary_files_are_read(tmp_path: Path, make: Callable[[Path], None], told: str) -> None:
    make(tmp_path / "tiny.ipynb")
    assert told in problem(tmp_path / "tiny.ipynb")
    with pytest.raises(UnreadableError, match="not an ordinary file"):
        files.read_file(Path("/dev/zero"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_closed_files_and_folders_are_reported(tmp_path: Path) -> None:
    path = written(tmp_path, SOUND)
    path.chmod(0)
    assert "may not be read by the grader. Check its permissions." in problem(path)
    tmp_path.chmod(0)
    with pytest.raises(UnreadableError, match="Check its permissions"):
        files.visible_in(tmp_path)
    tmp_path.chmod(0o700)


def test_any_file_name_is_shown_in_one_line(tmp_path: Path) -> None:
    for name in ("a\nb", "\u202egpj.x", "caf\udce9", "x" * 249, "\x1b[2J"):
        problem(written(tmp_path, b"", f"{name}.ipynb")).encode()
    assert escaped_name("naïve (2)\n\u202e\udce9") == "naïve (2)\\u000a\\u202e\\udce9"


def test_links_next_to_a_notebook_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # nbgrader's paths may be relative
    folder = Path("submitted", "bob", "01")
    (folder / "data").mkdir(parents=True)
    secret = written(tmp_path, b"an answer", "secret.txt")
    for name in ("notes.txt", "data/deep.txt"):
        (folder / name).write_text("mine")
        (folder / f"{name}.link").symlink_to(secret)
    for name, target in (("zero", "/dev/zero"), ("nowhere", "nowhere"), ("others", str(tmp_path)), ("a.ipynb", "x")):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "timestamp.txt")
    files.remove_links(assignment="01", student="*", notebooks=[str(folder / "a.ipynb")])
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert left == {"a.ipynb", "notes.txt", "data", "data/deep.txt"}
    assert secret.exists()
    (folder / "others").symlink_to("nowhere")
    (tmp_path / "eve").symlink_to(folder)
    files.remove_links(assignment="01", student="eve", notebooks=[str(tmp_path / "eve" / "a.ipynb")])
    assert (folder / "others").is_symlink()


def zipped(folder: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(folder / "class.zip", "w") as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name, (2026, 3, 1, 12, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return folder / "class.zip"


def patched(path: Path, offset: int, form: str, *values: int) -> Path:
    """Return the zip with other numbers in each entry of its directory."""
    data = bytearray(path.read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        struct.pack_into(form, data, at + offset, *values)
    path.write_bytes(data)
    return path


def test_zip_is_unpacked_to_a_temporary_folder(tmp_path: Path) -> None:
    path = zipped(tmp_path, ("ada/a.ipynb", SOUND), ("ada/large.csv", bytes(1000)), ("ada/deep/", b""))
    with unpacked([path, tmp_path]) as found:
        folder, unchanged = found.paths
        assert (unchanged, found.left_out) == (tmp_path, ())
        assert (folder / "ada/a.ipynb").read_bytes() == SOUND
        assert (folder / "ada/large.csv").stat().st_size == 0
        assert (folder / "ada/a.ipynb").stat().st_mtime == (folder / "ada/large.csv").stat().st_mtime
    assert not folder.exists()


@pytest.mark.parametrize(
    ("entry", "data", "told"),
    [
        *(
            (name, SOUND, "would be unpacked outside its folder")
            for name in ("../evil.ipynb", "/tmp/evil.ipynb", "a/../../evil.ipynb", "a\\evil.ipynb", "C:evil.ipynb")
        ),
        ("x" * 300 + ".ipynb", SOUND, "is damaged, or its name is not allowed"),
        ("good.ipynb", b"other", "is there twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_harmful_members_of_a_zip_are_left_out(tmp_path: Path, entry: str, data: bytes, told: str) -> None:
    with unpacked([zipped(tmp_path, ("good.ipynb", SOUND), (entry, data))]) as found:
        around = found.paths[0].parent
        assert [path.read_bytes() for path in around.rglob("*") if not path.is_dir()] == [SOUND]
    (sentence,) = found.left_out
    assert told in sentence
    assert sentence.endswith("; it was left out.")


def test_damaged_large_and_undated_notebooks_are_handled(tmp_path: Path) -> None:
    for offset, form, numbers, told in (
        *((8, "<H", [1], "is damaged"), (16, "<I", [0], "is damaged")),
        (12, "<I", [0], ""),  # an entry without a date
    ):
        path = zipped(tmp_path, ("a.ipynb", SOUND))
        with unpacked([patched(path, offset, form, *numbers)]) as found:
            assert told in "".join(found.left_out)
            assert [each.read_bytes() for each in found.paths[0].iterdir()] == ([] if told else [SOUND])
    path = patched(zipped(tmp_path, ("a.ipynb", os.urandom(200_000))), 20, "<II", 2_000_000_000, 2_000_000_000)
    with unpacked([path]) as found:
        assert (found.paths[0] / "a.ipynb").stat().st_blocks == 0
        assert "is larger than 50 MB" in problem(found.paths[0] / "a.ipynb")


@pytest.mark.parametrize(
    ("name", "encoding"), [("Zoe\u0308/a.ipynb", "utf-8"), ("赵敏/a.ipynb", "utf-8"), ("Zoë/a.ipynb", "cp437")]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_without_the_utf8_flag_are_decoded(tmp_path: Path, name: str, encoding: str) -> None:
    raw = name.encode(encoding)
    path = zipped(tmp_path, *[("x" * len(raw), SOUND)] * 2)
    path.write_bytes(path.read_bytes().replace(b"x" * len(raw), raw))
    with unpacked([path]) as found:
        assert (found.paths[0] / name).read_bytes() == SOUND
        assert found.left_out == (f"class.zip: {name} is there twice; it was left out.",)


def test_a_wrong_zip_is_rejected(tmp_path: Path) -> None:
    for path, told in (
        (written(tmp_path, b"no zip", "damaged.zip"), "damaged.zip is damaged, or is not a zip"),
        (zipped(tmp_path), "class.zip contains no files"),
    ):
        with pytest.raises(CourseError, match=told), unpacked([path]):
            pass


def test_line_ends_and_empty_cells_are_read_as_jupyter_shows_them(tmp_path: Path) -> None:
    for source, text in {"a = 1\r\nb\r": "a = 1\nb\n", None: ""}.items():
        assert texts(written(tmp_path, changed(("cells", 1, "source"), source)))[1] == text
