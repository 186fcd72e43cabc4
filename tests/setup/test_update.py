"""A learner who has begun a notebook gets its corrected text and keeps the work."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from lmcourse.authoring.document import RUN_FIRST
from lmcourse.cli import main
from lmcourse.course.chapters import find_chapter
from lmcourse.course.root import find_root
from lmcourse.jupyter.update import merged

CHAPTER = find_chapter("01")
RELEASED = find_root(None) / "notebooks" / CHAPTER.id / f"{CHAPTER.topic}.ipynb"


def test_answers_outputs_and_own_cells_move_into_the_new_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = nbformat.read(RELEASED, as_version=4)
    new = copy.deepcopy(old)
    cells = {cell.id: cell for cell in old.cells}
    answer, check, unanswered = (cells[name] for name in ("decode_bits", "check_decode_bits", "ulp"))
    answer.source = "def decode_bits(*_):\n    return 1"
    check.outputs = [new_output("stream", text="0 of 4")]
    own = new_code_cell("mine = 1", id="e3b1c0de-0000-4000-8000-000000000001")
    old.cells.insert(old.cells.index(answer) + 1, own)
    first = next(cell for cell in old.cells if cell.cell_type == "code")
    first.source = first.source.removeprefix(RUN_FIRST).replace("Run in a new cell", "Run it")  # an earlier release
    texts = [cell for cell in old.cells if cell.cell_type == "markdown"]
    texts[1].source += "\nMy note."
    corrected = next(cell for cell in new.cells if cell.id == texts[2].id)
    corrected.id, corrected.source = "0123456789ab", "The corrected text."
    next(
        cell for cell in new.cells if cell.id == "ulp"
    ).source = "def ulp():\n    raise NotImplementedError  # a new stub"

    made = merged(new, old)
    found = {cell.id: cell for cell in made.cells}
    assert found["decode_bits"].source == answer.source
    assert found["check_decode_bits"].outputs == check.outputs
    assert found[first.id].source == RUN_FIRST + first.source.replace("Run it", "Run in a new cell")
    assert made.cells[made.cells.index(found["decode_bits"]) + 1] == own
    assert found[texts[1].id].source.endswith("My note.")
    assert found["0123456789ab"].source == "The corrected text."
    assert texts[2].id not in found
    assert found["ulp"].source != unanswered.source
    assert len(made.cells) == len(old.cells)

    new.cells = [cell for cell in new.cells if cell.id != "decode_bits"]
    for name, notebook in (("old", old), ("new", new)):
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    before = (tmp_path / "old.ipynb").read_bytes()
    assert main(["update", str(tmp_path / "new.ipynb"), str(tmp_path / "old.ipynb")]) == 0
    said = capsys.readouterr().out
    assert said.endswith("decode_bits is no longer asked: your answer to it is only in old-before-1.ipynb.\n")
    assert (tmp_path / "old-before-1.ipynb").read_bytes() == before
    assert "The corrected text." in (tmp_path / "old.ipynb").read_text(encoding="utf-8")


def test_files_that_are_not_two_copies_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = RELEASED.parents[1] / "02-tensors" / "tensors.ipynb"
    (tmp_path / "text.ipynb").write_text("no notebook")
    for old in (other, RELEASED, tmp_path / "text.ipynb", tmp_path / "missing.ipynb"):
        assert main(["update", str(RELEASED), str(old)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
