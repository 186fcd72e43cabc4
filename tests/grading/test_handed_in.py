"""A file handed in inside a notebook reaches the working folder of its answer."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lmcourse.exercises import case
from lmcourse.grading.examine import SubmittedCode, examine
from lmcourse.grading.notebooks import HANDED_IN, METADATA_KEY, read_submission
from lmcourse.grading.process import Settings
from lmcourse.grading.restore import restored
from lmcourse.report.handed_in import FILE_MIME, MAX_FILE_BYTES, decoded, encoded_in, hand_in
from tests.grading.conftest import needs_bubblewrap
from tests.grading.test_examine import exercise
from tests.grading.test_restore import COURSE, answer, check


def output(data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": {FILE_MIME: data, "text/plain": "a file"}}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_file_reaches_the_notes_of_the_restored_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook is in JupyterLab's format, and it is read and rebuilt. The last file counts."""
    (tmp_path / "model.bin").write_bytes(bytes(range(256)))
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "IPython.display.display",
        lambda data, raw: shown.append({"output_type": "display_data", "metadata": {}, "data": data}),
    )
    hand_in(tmp_path / "model.bin")
    cells = [
        nbformat.v4.new_code_cell("hand_in()", outputs=[nbformat.from_dict(output(base64_of(b"old")))]),
        nbformat.v4.new_code_cell("hand_in()", outputs=[*map(nbformat.from_dict, shown)]),
        answer(),
        check(),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    notebook = restored(read_submission(tmp_path / "a.ipynb"), COURSE, "01-tiny")
    assert decoded(notebook.metadata[METADATA_KEY][HANDED_IN]) == bytes(range(256))
    assert all(HANDED_IN not in cell.metadata for cell in notebook.cells)


@pytest.mark.parametrize(
    "outputs",
    [None, 3, [3], [{"data": 3}], [output(3)], [output([3])], [output("no Base64!")], [output("é")],
     [output(base64_of(bytes(MAX_FILE_BYTES + 1)))]],
    ids=range(9),
)  # fmt: skip
def test_outputs_without_a_file_give_no_base64(outputs: Any) -> None:
    assert encoded_in(outputs) == ""


def test_a_file_that_is_too_large_is_rejected_in_the_notebook(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(ValueError, match="524,289 bytes, but at most 524,288"):
        hand_in(tmp_path / "large.bin")


@pytest.mark.prove
@needs_bubblewrap
@pytest.mark.parametrize("isolation", ["bubblewrap", "process"])
def test_an_answer_reads_the_handed_in_file(isolation: Any, tmp_path: Path) -> None:
    example = tmp_path / "model.bin"
    example.write_bytes(b"12345")
    size = exercise("size", lambda: 5, case("one"), file=example)
    text = 'def size():\n    return len(open("model.bin", "rb").read())'
    for file, points, diagnosis in ((b"abcde", 4.0, ""), (b"abc", 0.0, ""), (b"", 0.0, "holds no model.bin")):
        report = examine(SubmittedCode((text,), {1: "size"}, file=file), [size], Settings(isolation)).reports["size"]
        assert report.points == points
        assert diagnosis in report.diagnosis
