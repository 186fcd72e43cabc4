"""From any bytes to a notebook, or to a sentence that a learner can act on; never anything else."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import v3

from lmcourse.grading.intake import files
from lmcourse.grading.intake import notebook as notebook_format
from lmcourse.grading.intake.exporter import SubmissionExporter
from lmcourse.grading.intake.files import UnreadableError, escaped_name, read_file
from lmcourse.grading.intake.notebook import read_submission
from tests.grading.strange import REPLACED, nested, sound, with_replaced

SOUND = json.dumps(sound()).encode()


def written(folder: Path, data: bytes, name: str = "tiny.ipynb") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def problem(path: Path) -> str:
    with pytest.raises(UnreadableError) as caught:
        read_submission(path)
    return str(caught.value)


def texts(path: Path) -> list[str]:
    return [cell.source for cell in read_submission(path).cells]


def read_or_refused(path: Path) -> None:
    """The oracle: a valid notebook that can be written and read again, or one line."""
    try:
        notebook = read_submission(path)
    except UnreadableError as error:
        told = str(error)
        assert told.isprintable()
        assert told.startswith(("tiny.ipynb ", "The "))
        assert told.endswith(".")
        assert len(told) < 300
        return
    nbformat.validate(notebook)
    again = nbformat.reads(nbformat.writes(notebook).encode().decode(), as_version=4)
    assert [cell.source for cell in again.cells] == [cell.source for cell in notebook.cells]
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "tiny.ipynb"


@settings(max_examples=150, deadline=None)
@given(notebook=REPLACED)
def test_any_node_of_a_notebook_may_be_anything(place: Path, notebook: Any) -> None:
    place.write_text(json.dumps(notebook))
    read_or_refused(place)


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, len(SOUND)), more=st.binary(max_size=8), skipped=st.integers(0, 30))
def test_a_file_may_break_off_or_lack_bytes_anywhere(place: Path, cut: int, more: bytes, skipped: int) -> None:
    place.write_bytes(SOUND[:cut] + more)
    read_or_refused(place)
    place.write_bytes(SOUND[:cut] + more + SOUND[cut + skipped :])
    read_or_refused(place)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes(place: Path, data: bytes) -> None:
    place.write_bytes(data)
    read_or_refused(place)


def test_what_grading_does_not_use_may_be_broken(tmp_path: Path) -> None:
    """Outputs, widgets and a kernel that nobody has: a notebook of an honest learner after an accident."""
    good = texts(written(tmp_path, SOUND))
    for place, value in (
        (("cells", 1, "outputs"), [{"output_type": "display_data", "data": {"text/html": 5}}]),
        (("cells", 1, "outputs"), None),
        (("cells", 1, "execution_count"), "many"),
        (("cells", 1, "id"), "an id with spaces"),
        (("cells", 3, "id"), "title"),
        (("cells", 0, "attachments"), nested(300)),
        (("cells", 0, "metadata"), nested(300)),
        (("metadata"), nested(300)),
        (("metadata", "kernelspec"), {"name": 5}),
        (("metadata", "widgets"), {"x": "y" * 10**6}),
        (("nbformat_minor"), "99"),
    ):
        changed = with_replaced(place if isinstance(place, tuple) else (place,), value)
        assert texts(written(tmp_path, json.dumps(changed).encode())) == good


def test_of_what_a_notebook_says_about_itself_only_plain_values_are_kept(tmp_path: Path) -> None:
    """So nothing that copies or compares them can be led astray."""
    said = {"text": "a", "number": 1, "list": ["a"], "deep": [["a"]], "dictionary": {"a": 1}, "nothing": None}
    kept = {"text": "a", "number": 1, "list": ["a"]}
    notes = with_replaced(("metadata", "lmcourse"), said)
    assert read_submission(written(tmp_path, json.dumps(notes).encode())).metadata["lmcourse"] == kept
    marks = with_replaced(("cells", 3, "metadata", "nbgrader"), said)
    assert read_submission(written(tmp_path, json.dumps(marks).encode())).cells[3].metadata == {"nbgrader": kept}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_unicode_in_each_of_its_encodings(tmp_path: Path, encoding: str) -> None:
    notebook = with_replaced(("cells", 1, "source"), "# naïve 😀")
    path = written(tmp_path, json.dumps(notebook, ensure_ascii=False).encode(encoding))
    assert texts(path)[1] == "# naïve 😀"


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 4, 5, None])
def test_each_format_4(tmp_path: Path, minor: int | None) -> None:
    notebook = with_replaced(("nbformat_minor",), minor)
    for cell in notebook["cells"] if minor is not None and minor < 5 else []:
        cell.pop("id")
    ids = [cell["id"] for cell in read_submission(written(tmp_path, json.dumps(notebook).encode())).cells]
    assert len(set(ids)) == len(ids)


def test_worksheets_of_formats_2_and_3(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["1 +", " 1"]}, {"cell_type": "heading", "level": 1, "source": "Title"}]
    for version in (2, 3):
        old = {"nbformat": version, "metadata": {}, "worksheets": [{"cells": cells}, {"cells": cells[:1]}]}
        assert texts(written(tmp_path, json.dumps(old).encode())) == ["1 + 1", "Title", "1 + 1"]


def archive(kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as bundle:
            bundle.writestr("tiny.ipynb", SOUND)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz" if kind == "tar.gz" else "w") as bundle:
            info = tarfile.TarInfo("tiny.ipynb")
            info.size = len(SOUND)
            bundle.addfile(info, io.BytesIO(SOUND))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (archive("zip"), "unpack it and hand in the notebook itself"),
        (archive("tar"), "unpack it and hand in the notebook itself"),
        (archive("tar.gz"), "unpack it and hand in the notebook itself"),
        (gzip.compress(SOUND), "unpack it and hand in the notebook itself"),
        (gzip.compress(bytes(10**7)), "unpack it and hand in the notebook itself"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html>", "is a web page"),
        (b"%PDF-1.7", "is a PDF"),
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\x00" * 100, "cannot be read as a notebook"),
        (SOUND[:500], "it breaks off in line 1"),
        (b'{"cells": [],\n"metadata": {}', "it breaks off in line 2"),
        (b'{\n<<<<<<< HEAD\n"cells": []}', "the marks of a git merge"),
        (b"import torch", "line 1 is no JSON"),
        ('{"é": 1}'.encode("latin-1"), "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"nbformat": 1' + b"0" * 5000 + b"}", "cannot be read as a notebook"),
        (b"[]", "it lacks what a notebook has"),
        (b"{}", "it lacks what a notebook has"),
        (b"NaN", "it lacks what a notebook has"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 5}]}', "it lacks what a notebook has"),
        (b'{"nbformat": 5, "cells": []}', "in a format of notebooks (5)"),
        (b'{"nbformat": 99}', "in a format of notebooks (99)"),
        (b'{"nbformat": "4", "cells": []}', "in a format of notebooks (unknown)"),
    ],
)
def test_each_mistake_has_its_sentence(tmp_path: Path, data: bytes, told: str) -> None:
    path = written(tmp_path, data)
    assert told in problem(path)
    read_or_refused(path)


def test_the_last_of_equal_keys_counts_as_everywhere(tmp_path: Path) -> None:
    assert texts(written(tmp_path, b'{"nbformat": 9, "nbformat": 4, "cells": [], "cells": []}')) == []


@pytest.mark.parametrize(
    ("limit", "notebook", "told"),
    [
        ("MAX_VALUES", with_replaced(("metadata",), {"a": [1] * 200}), "clear its outputs"),
        ("MAX_CELLS", {"nbformat": 4, "cells": [{"cell_type": "raw", "source": ""}] * 101}, "more than 100 cells"),
        (
            "MAX_SOURCE_CHARS",
            {"nbformat": 4, "cells": [{"cell_type": "raw", "source": "x" * 101}]},
            "more than 100 characters",
        ),
    ],
)
def test_more_than_a_limit_is_refused_and_a_limit_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, notebook: Any, told: str
) -> None:
    path = written(tmp_path, json.dumps(notebook).encode())
    monkeypatch.setattr(notebook_format, limit, 100)
    assert told in problem(path)
    marks = sum(path.read_text().count(mark) for mark in ",:[{")
    monkeypatch.setattr(notebook_format, limit, marks if limit == "MAX_VALUES" else 101)
    read_submission(path)


def test_a_file_is_read_up_to_the_limit_even_if_it_is_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", len(SOUND))
    assert texts(written(tmp_path, SOUND))
    assert "larger than" in problem(written(tmp_path, SOUND + b" "))
    sparse = tmp_path / "tiny.ipynb"
    with sparse.open("wb") as file:
        file.truncate(2**40)
    assert "larger than" in problem(sparse)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket has room for 100 characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.symlink_to("/etc/passwd"), "is a link"),
        (lambda path: path.symlink_to(path), "is a link"),
        (lambda path: path.symlink_to("/dev/zero"), "is a link"),
        (lambda path: path.symlink_to(path.parent), "is a link"),
        (lambda path: path.symlink_to("nowhere"), "is a link"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: os.mkfifo(path), "is no ordinary file"),
        (a_socket, "is no ordinary file"),
        (lambda path: None, "cannot be opened (No such file"),
    ],
)
def test_what_is_no_file_is_neither_read_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None], told: str
) -> None:
    path = tmp_path / "tiny.ipynb"
    make(path)
    assert told in problem(path)
    text, resources = SubmissionExporter().from_filename(str(path))
    assert json.loads(text)["cells"] == []
    assert told in resources["problem"]


def test_a_device_is_no_file() -> None:
    with pytest.raises(UnreadableError, match="no ordinary file"):
        read_file(Path("/dev/zero"))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)  # root may read anything
    assert "its permissions have to allow it" in problem(tmp_path / "tiny.ipynb")


def test_a_hard_link_is_a_file_like_any_other(tmp_path: Path) -> None:
    os.link(written(tmp_path, SOUND, "mine.ipynb"), tmp_path / "tiny.ipynb")
    assert texts(tmp_path / "tiny.ipynb")


@pytest.mark.parametrize(
    "name", ["a\nb", "-rf", "a b'\"", "\u202egpj.x", "caf\udce9", "x" * 249, "\x1b[2J", "<script>", "${HOME}"]
)
def test_any_name_is_told_in_one_printable_line(tmp_path: Path, name: str) -> None:
    told = problem(written(tmp_path, b"", f"{name}.ipynb"))
    assert told.isprintable()
    assert told.encode()
    assert len(told) < 250


def test_a_name_is_shown_as_it_is_or_spelled_out() -> None:
    assert escaped_name("naïve (2).ipynb") == "naïve (2).ipynb"
    assert escaped_name("a\n\u202e\udce9") == "a\\u000a\\u202e\\udce9"
    assert len(escaped_name("x" * 300)) == files.MAX_NAME_CHARS


def test_old_formats_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    old = v3.new_notebook(worksheets=[v3.new_worksheet(cells=[v3.new_code_cell("1 + 1")])])
    path = tmp_path / "old.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + v3.writes_json(old).encode())
    assert [cell.source for cell in read_submission(path).cells] == ["1 + 1"]


def test_an_enormous_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    path = tmp_path / "big.ipynb"
    path.write_text("{" + " " * 20 + "}")
    with pytest.raises(UnreadableError, match="clear its outputs"):
        read_submission(path)


def test_nested_too_deep_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "deep.ipynb"
    path.write_text("[" * 100_000)
    with pytest.raises(UnreadableError, match="open it in JupyterLab"):
        read_submission(path)
