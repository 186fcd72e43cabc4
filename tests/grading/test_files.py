"""Files that learners hand in: which are read, which are rejected and why, and harmful zips."""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import os
import socket
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.errors import CourseError
from lmcourse.grading import files, notebooks
from lmcourse.grading.files import (
    UnreadableError,
    escaped_name,
    folders_in,
    read_file,
    remove_links,
    unpacked,
    visible_in,
    why_no_notebook,
)
from lmcourse.grading.notebooks import is_picture, read_submission
from lmcourse.units import MIB

TITLE = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Title\n", "![p](attachment:p.png)"]}
ANSWER = {"cell_type": "code", "id": "ulp", "execution_count": 1, "source": "def ulp(x):\n    return 1"}
MARKS = {"nbgrader": {"grade_id": "ulp", "solution": True, "points": 2}}
PICTURES = {"p.png": {"image/png": "AAAA"}, "x.svg": {"image/svg+xml": "AAAA"}}
OUTPUT = {"output_type": "display_data", "data": {"text/html": ["<b>"]}, "metadata": {}}
KERNEL = {"name": "python3", "display_name": "Python 3"}
NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": KERNEL, "lmcourse": {"problem": ""}, "widgets": {"state": {}}},
    "cells": [
        {**TITLE, "attachments": PICTURES},
        {**ANSWER, "metadata": MARKS, "outputs": [OUTPUT]},
        {"cell_type": "raw", "id": "raw", "metadata": {}, "source": "<i>"},
    ],
}
SOUND = json.dumps(NOTEBOOK).encode()
SIZE = 4_000_000_000
TEXTS = ["# Title\n![p](attachment:p.png)", "def ulp(x):\n    return 1", "<i>"]


def places(node: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(child, (*here, key))


def changed(place: tuple[Any, ...], value: Any) -> Any:
    """The notebook with another value in one place."""
    if not place:
        return value
    node = notebook = copy.deepcopy(NOTEBOOK)
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return notebook


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


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


def read_or_rejected(path: Path) -> None:
    """Accept one line of reason, or a valid notebook without outputs that can be written and read again."""
    try:
        notebook = read_submission(path)
    except UnreadableError:
        assert problem(path).startswith("tiny.ipynb ")
        return
    nbformat.validate(notebook)
    again = nbformat.reads(nbformat.writes(notebook).encode().decode(), as_version=4)
    assert [cell.source for cell in again.cells] == [cell.source for cell in notebook.cells]
    assert not any(cell.get("outputs") for cell in notebook.cells)


ODD = st.text(st.characters(exclude_categories=()), max_size=9) | st.sampled_from(["\ud800", "nbgrader", "ulp", "\0"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ODD | st.sampled_from([10**4000, 1e400])
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any") / "tiny.ipynb"


@settings(max_examples=100, deadline=None)
@given(notebook=st.builds(changed, st.sampled_from([*places(NOTEBOOK)]), ANYTHING))
def test_any_value_may_be_anything(place: Path, notebook: Any) -> None:
    place.write_text(json.dumps(notebook))
    read_or_rejected(place)


@settings(max_examples=100, deadline=None)
@given(cut=st.integers(0, len(SOUND)), more=st.binary(max_size=8), skipped=st.integers(0, 2000))
def test_any_bytes_may_be_lost(place: Path, cut: int, more: bytes, skipped: int) -> None:
    place.write_bytes(SOUND[:cut] + more + SOUND[cut + skipped :])
    read_or_rejected(place)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("cells", 1, "outputs"), [{**OUTPUT, "data": {"text/html": 5}}]),
        (("cells", 1, "outputs"), None),
        (("cells", 1, "execution_count"), "many"),
        (("cells", 1, "id"), "an id with spaces"),
        (("cells", 1, "id"), "title"),
        (("cells", 0, "attachments"), nested(300)),
        (("cells", 0, "metadata"), nested(300)),
        (("metadata",), nested(300)),
        (("metadata", "kernelspec"), {"name": 5}),
        (("metadata", "widgets"), {"x": "y" * 10**6}),
        (("nbformat_minor",), "99"),
        (("nbformat_minor",), None),
    ],
)
def test_unused_parts_may_be_broken(tmp_path: Path, where: tuple[Any, ...], value: Any) -> None:
    path = written(tmp_path, json.dumps(changed(where, value)).encode())
    assert texts(path) == TEXTS
    read_or_rejected(path)


@pytest.mark.filterwarnings("error")
def test_cells_keep_ids_marks_and_pictures_only(tmp_path: Path) -> None:
    said = {"text": "a", "number": 1, "list": ["a"], "deep": [["a"]], "dictionary": {"a": 1}, "nothing": None}
    kept = {"text": "a", "number": 1, "list": ["a"]}
    marks = changed(("cells", 1, "metadata"), {"nbgrader": said, "tags": ["x"]})
    marks["cells"].append(marks["cells"][1])
    title, answer, _, copied = read_submission(written(tmp_path, json.dumps(marks).encode())).cells
    assert (title["id"], answer["id"]) == ("title", "ulp")
    assert copied["id"] not in ("title", "ulp", "raw")
    assert answer.metadata == copied.metadata == {"nbgrader": kept}
    assert title.attachments == {"p.png": {"image/png": "AAAA"}}
    notes = changed(("metadata", "lmcourse"), said)
    metadata = read_submission(written(tmp_path, json.dumps(notes).encode())).metadata
    assert metadata == {"lmcourse": kept, "kernelspec": KERNEL}
    assert not is_picture("image/png", "<script>")
    assert not is_picture("image/svg+xml", "AAAA")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_every_unicode_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    notebook = changed(("cells", 1, "source"), "# naïve 😀")
    path = written(tmp_path, json.dumps(notebook, ensure_ascii=False).encode(encoding))
    assert texts(path)[1] == "# naïve 😀"
    assert texts(written(tmp_path, json.dumps(changed(("cells", 1, "source"), "a\ud800")).encode()))[1] == "a?"


def test_formats_2_and_3_are_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["1 +", " 1"]}, {"cell_type": "heading", "level": 1, "source": "Title"}]
    for version in (2, 3):
        old = {"nbformat": version, "metadata": {}, "worksheets": [{"cells": cells}, {"cells": cells[:1]}]}
        assert texts(written(tmp_path, json.dumps(old).encode())) == ["1 + 1", "Title", "1 + 1"]


def archive(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as bundle:
        info = tarfile.TarInfo("tiny.ipynb")
        info.size = len(SOUND)
        bundle.addfile(info, io.BytesIO(SOUND))
    return buffer.getvalue()


def cells_of(*sources: str) -> bytes:
    cells = [{"cell_type": "raw", "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "cells": cells}).encode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"PK\x03\x04", "is an archive, such as a zip. Unpack it and hand in the notebook itself."),
        (archive("w"), "is an archive"),
        (archive("w:gz"), "is an archive"),
        (gzip.compress(bytes(10**7)), "is an archive"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html>", "is a web page"),
        (b"%PDF-1.7", "is a PDF"),
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\x00" * 100, "cannot be read as a notebook"),
        (SOUND[:500], "it is cut off in line 1"),
        (b'{"cells": [],\n"metadata": {}', "it is cut off in line 2"),
        (b'{\n<<<<<<< HEAD\n"cells": []}', "a git merge conflict"),
        (b"import torch", "line 1 is not JSON"),
        ('{"é": 1}'.encode("latin-1"), "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"nbformat": 1' + b"0" * 5000 + b"}", "cannot be read as a notebook"),
        (b"[]", "it lacks parts"),
        (b"NaN", "it lacks parts"),
        (cells_of(5), "it lacks parts"),
        (b'{"nbformat": 5, "cells": []}', "has notebook format 5"),
        (b'{"nbformat": "4", "cells": []}', "has notebook format unknown"),
        (b"[" + b"1," * notebooks.MAX_VALUES, "holds too much data. Clear its outputs"),
        (cells_of(*[""] * (notebooks.MAX_CELLS + 1)), "has more than 2,000 cells"),
        (cells_of("x" * notebooks.MAX_SOURCE_CHARS, "x"), "has more than 300,000 characters"),
    ],
)
def test_each_wrong_file_gets_its_reason(tmp_path: Path, data: bytes, told: str) -> None:
    assert told in problem(written(tmp_path, data))


def test_files_at_the_limits_are_read(tmp_path: Path) -> None:
    assert len(texts(written(tmp_path, cells_of(*[""] * notebooks.MAX_CELLS)))) == notebooks.MAX_CELLS
    assert texts(written(tmp_path, cells_of("x" * notebooks.MAX_SOURCE_CHARS)))
    os.link(written(tmp_path, SOUND, "mine.ipynb"), tmp_path / "hard link.ipynb")
    assert texts(tmp_path / "hard link.ipynb") == TEXTS
    os.truncate(tmp_path / "mine.ipynb", files.MAX_FILE_BYTES)
    assert len(read_file(tmp_path / "mine.ipynb")) == files.MAX_FILE_BYTES
    os.truncate(tmp_path / "mine.ipynb", 2**40)
    assert "is larger than 50 MB" in problem(tmp_path / "mine.ipynb")


def make_socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:  # a path of 100 characters at most
        server.bind(path.name)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        *(
            (lambda path, to=to: path.symlink_to(to), "is a link")
            for to in ("/etc/passwd", "/dev/zero", "nowhere", ".")
        ),
        (lambda path: path.symlink_to(path), "is a link"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: os.mkfifo(path), "is not an ordinary file"),
        (make_socket, "is not an ordinary file"),
        (lambda path: None, "cannot be opened (No such file"),
    ],
)
def test_only_ordinary_files_are_read(tmp_path: Path, make: Callable[[Path], None], told: str) -> None:
    make(tmp_path / "tiny.ipynb")
    assert told in problem(tmp_path / "tiny.ipynb")
    with pytest.raises(UnreadableError, match="not an ordinary file"):
        read_file(Path("/dev/zero"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_closed_files_and_folders_are_reported(tmp_path: Path) -> None:
    path = written(tmp_path, SOUND)
    path.chmod(0)
    assert "may not be read by the grader. Check its permissions." in problem(path)
    tmp_path.chmod(0)
    with pytest.raises(UnreadableError, match="Check its permissions"):
        visible_in(tmp_path)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "name", ["a\nb", "-rf", "a b'\"", "\u202egpj.x", "caf\udce9", "x" * 249, "\x1b[2J", "<script>"]
)
def test_any_file_name_is_shown_in_one_line(tmp_path: Path, name: str) -> None:
    problem(written(tmp_path, b"", f"{name}.ipynb")).encode()
    assert len(escaped_name("x" * 300)) == files.MAX_NAME_CHARS
    assert escaped_name("naïve (2)\n\u202e\udce9") == "naïve (2)\\u000a\\u202e\\udce9"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "No notebook was handed in: 01/a.ipynb is missing."),
        (["my.zip"], "my.zip is an archive. Unpack it and hand in the notebook itself, as 01/a.ipynb."),
        (["evil\n.TAR.GZ"], "evil\\u000a.TAR.GZ is an archive"),
        (["01/a.ipynb"], "The notebook is one folder too deep. Move 01/a.ipynb to 01/a.ipynb."),
        (["._a.ipynb", ".ipynb_checkpoints/a.ipynb", "__MACOSX/a.ipynb", "a.txt"], "No notebook was handed in"),
    ],
)
def test_a_missing_notebook_is_explained(tmp_path: Path, names: list[str], told: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert why_no_notebook(tmp_path, "01/a.ipynb").startswith(told)
    assert not {path.name for path in folders_in(tmp_path)} & {".ipynb_checkpoints", "__MACOSX", "a.txt"}
    with pytest.raises(UnreadableError, match=r"The folder none cannot be opened \(No such file or directory\)"):
        folders_in(tmp_path / "none")


def test_links_beside_a_notebook_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    remove_links(assignment="01", student="*", notebooks=[str(folder / "a.ipynb")])
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert left == {"a.ipynb", "notes.txt", "data", "data/deep.txt"}
    assert secret.exists()
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "link").symlink_to("nowhere")
    (tmp_path / "eve").symlink_to(tmp_path / "alice")
    remove_links(assignment="01", student="eve", notebooks=[str(tmp_path / "eve" / "a.ipynb")])
    assert (tmp_path / "alice" / "link").is_symlink()


def member(name: str, mode: int = stat.S_IFREG, method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2026, 3, 1, 12, 0, 0))
    info.external_attr = (mode | 0o644) << 16
    info.compress_type = method
    return info


def zipped(folder: Path, *members: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(folder / "class.zip", "w") as file:
        for name, data in members:
            file.writestr(member(name) if isinstance(name, str) else name, data)
    return folder / "class.zip"


def patched(path: Path, offset: int, form: str, *values: int) -> Path:
    """The zip with other numbers in each entry of its directory."""
    data = bytearray(path.read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        struct.pack_into(form, data, at + offset, *values)
    path.write_bytes(data)
    return path


def test_zip_becomes_a_temporary_folder(tmp_path: Path) -> None:
    path = zipped(tmp_path, ("ada/a.ipynb", SOUND), ("ada/large.csv", bytes(1000)), ("ada/deep/", b""))
    with unpacked([path, tmp_path]) as found:
        folder, unchanged = found.paths
        assert (unchanged, found.left_out) == (tmp_path, ())
        assert (folder / "ada/a.ipynb").read_bytes() == SOUND
        assert (folder / "ada/large.csv").stat().st_size == 0
        assert (folder / "ada/a.ipynb").stat().st_mtime == pytest.approx((folder / "ada/large.csv").stat().st_mtime)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("entry", "data", "told"),
    [
        *(
            (name, SOUND, "would be unpacked outside its folder")
            for name in ("../evil.ipynb", "/tmp/evil.ipynb", "a/../../evil.ipynb", "a\\evil.ipynb", "C:evil.ipynb")
        ),
        ("d/" * 6 + "evil.ipynb", SOUND, "is more than 5 folders deep"),
        (member("evil.ipynb", stat.S_IFLNK), b"/etc/passwd", "is a link or a device"),
        (member("evil.ipynb", stat.S_IFIFO), b"", "is a link or a device"),
        ("evil.ipynb", bytes(2 * MIB), "is compressed more than 100 times"),
        (member("evil.ipynb", method=zipfile.ZIP_BZIP2), bytes(9 * MIB), "is compressed with a method"),
        (member("evil.ipynb", method=zipfile.ZIP_LZMA), SOUND, "is compressed with a method"),
        ("x" * 300 + ".ipynb", SOUND, "is damaged, or its name is not allowed"),
        ("good.ipynb", b"other", "is there twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_harmful_members_of_a_zip_are_left_out(
    tmp_path: Path, entry: zipfile.ZipInfo | str, data: bytes, told: str
) -> None:
    with unpacked([zipped(tmp_path, ("good.ipynb", SOUND), (entry, data))]) as found:
        around = found.paths[0].parent
        assert [path.name for path in around.rglob("*") if not path.is_dir()] == ["good.ipynb"]
        assert (found.paths[0] / "good.ipynb").read_bytes() == SOUND
    (sentence,) = found.left_out
    assert told in sentence
    assert sentence.endswith("; it was left out.")


@pytest.mark.parametrize(
    ("offset", "form", "values", "told"),
    [(8, "<H", [1], "is encrypted"), (16, "<I", [0], "is damaged"), (20, "<II", [9, 10**9], "compressed more than")],
)
def test_damaged_members_of_a_zip_are_left_out(
    tmp_path: Path, offset: int, form: str, values: list[int], told: str
) -> None:
    with unpacked([patched(zipped(tmp_path, ("a.ipynb", SOUND)), offset, form, *values)]) as found:
        assert told in found.left_out[0]
        assert [*found.paths[0].iterdir()] == []


def test_large_or_undated_notebooks_are_unpacked(tmp_path: Path) -> None:
    with unpacked([patched(zipped(tmp_path, ("a.ipynb", SOUND)), 12, "<I", 0)]) as found:
        assert (found.paths[0] / "a.ipynb").read_bytes() == SOUND
    path = patched(zipped(tmp_path, ("a.ipynb", os.urandom(200_000))), 20, "<II", 2_000_000_000, 2_000_000_000)
    with unpacked([path]) as found:
        assert (found.paths[0] / "a.ipynb").stat().st_blocks == 0
        assert "is larger than 50 MB" in problem(found.paths[0] / "a.ipynb")


def renamed(path: Path, name: str, new: bytes) -> Path:
    """The zip with other bytes for a part of a name, as long as before."""
    path.write_bytes(path.read_bytes().replace(name.encode(), new))
    return path


def mac_zip(folder: Path, *names: str) -> Path:
    """A zip with UTF-8 names, without the flag that says so."""
    stand_ins = [f"{'x' * len(name.encode())}{place}" for place, name in enumerate(names)]
    path = zipped(folder, *((name, SOUND) for name in stand_ins))
    for name, stand_in in zip(names, stand_ins, strict=True):
        renamed(path, stand_in, f"{name}b".encode())
    return path


@pytest.mark.parametrize("name", ["Zoë/a.ipyn", "Zoe\u0308/a.ipyn", "赵敏/a.ipyn", "plain/a.ipyn"])
def test_utf8_names_without_the_flag_are_decoded(tmp_path: Path, name: str) -> None:
    with unpacked([mac_zip(tmp_path, name)]) as found:
        assert (found.paths[0] / f"{name}b").read_bytes() == SOUND
        assert found.left_out == ()
    with unpacked([mac_zip(tmp_path, name, name)]) as found:
        assert found.left_out == (f"class.zip: {name}b is there twice; it was left out.",)


def test_cp437_names_are_decoded(tmp_path: Path) -> None:
    path = renamed(zipped(tmp_path, ("Zo#/a.ipynb", SOUND)), "Zo#/a", "Zoë/a".encode("cp437"))
    with unpacked([path]) as found:
        assert (found.paths[0] / "Zoë/a.ipynb").exists()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: zipped(folder, *((f"{n}", b"") for n in range(20_001))), "holds more than 20,000 files"),
        (
            lambda folder: patched(zipped(folder, ("a.ipynb", b""), ("b.ipynb", b"")), 20, "<II", SIZE, SIZE),
            "than 4 GiB",
        ),
        *(
            (lambda folder, data=data: written(folder, data, "class.zip"), "class.zip is damaged, or is not a zip")
            for data in (b"", b"no zip", b"PK\x03\x04" + bytes(40))
        ),
        (lambda folder: patched(zipped(folder, ("a.ipynb", SOUND)), 6, "<H", 99), "is damaged"),  # version 9.9
        (lambda folder: renamed(zipped(folder, ("é.ipynb", SOUND)), "é", b"\xff\xff"), "is damaged"),
    ],
)
def test_a_wrong_zip_is_rejected(tmp_path: Path, make: Callable[[Path], Path], told: str) -> None:
    with pytest.raises(CourseError, match=told), unpacked([make(tmp_path)]):
        pass
