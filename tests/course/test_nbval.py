"""`pytest --nbval solutions` has no gaps, although nbval does not compare cells that were stored without running."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lmcourse.course.chapters import Chapter
from tests.course.chapters import EACH, ROOT, solution

SOLUTION = {"nbgrader": {"solution": True, "grade": False}}
CHECK = {"nbgrader": {"solution": False, "grade": True}}
NOT_COMPARED = {"nbval-skip", "nbval-ignore-output"}
BECAUSE = "because "
"""The beginning of the tag with a reason: `tags=["nbval-ignore-output", "because it shows the time"]`."""


def gaps(notebook: NotebookNode) -> Iterator[str]:
    """Return all cells of a notebook that nbval would not check, with the reason."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        if cell.execution_count is None:
            yield f"{cell.id}: never executed, so nothing is compared"
        if NOT_COMPARED & set(tags) and not any(tag.startswith(BECAUSE) for tag in tags):
            yield f'{cell.id}: not compared, without a reason: add a tag "because ..."'
        if NOT_COMPARED & set(tags) and cell.metadata.get("nbgrader"):
            yield f"{cell.id}: an exercise and its check are always compared"
        if "# NBVAL" in cell.source:
            yield f"{cell.id}: say it with a tag, not with a comment that a learner must read"
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in tags:
                yield f"{cell.id}: the stored output is an error"
            if output.output_type == "stream" and output.name == "stderr":
                yield f"{cell.id}: the stored output holds stderr"


@EACH
def test_every_cell_of_a_solution_is_executed_and_compared(chapter: Chapter) -> None:
    assert list(gaps(solution(chapter))) == []


GOOD = new_notebook(
    cells=[
        new_code_cell("1 + 1", execution_count=1),
        new_code_cell("now()", execution_count=2, metadata={"tags": ["nbval-ignore-output", "because it is the time"]}),
    ]
)


def test_a_notebook_without_stubs_has_no_gaps() -> None:
    assert list(gaps(GOOD)) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"execution_count": None}, "never executed"),
        ({"metadata": {"tags": ["nbval-skip"]}}, "without a reason"),
        ({"metadata": {"tags": ["nbval-ignore-output", "a clock"]}}, "without a reason"),
        ({"metadata": {"tags": ["nbval-skip", "because"], "nbgrader": {"grade": True}}}, "always compared"),
        ({"source": "# NBVAL_SKIP\n1 / 0"}, "with a tag"),
        ({"outputs": [new_output("error", ename="ValueError", evalue="", traceback=[])]}, "is an error"),
        ({"outputs": [new_output("stream", name="stderr", text="warning")]}, "stderr"),
    ],
)
def test_each_gap_is_found(change: dict[str, object], complaint: str) -> None:
    notebook = copy.deepcopy(GOOD)
    notebook.cells[0].update(nbformat.from_dict(change))
    found = list(gaps(notebook))
    assert any(complaint in line for line in found), found


CELLS: list[tuple[str, dict[str, Any], bool]] = [
    ("x = 1", {}, True),
    ("def f():\n    raise NotImplementedError", SOLUTION, True),
    ("f()", CHECK, True),
    ("undefined", CHECK, True),
    ("assert x == 2", CHECK, True),
    ("1 / 0", CHECK, False),
    ("[][0]", SOLUTION, False),
    ("undefined", {}, False),
    ("f()", {}, False),
    ("assert x == 2", {}, False),
    ("1 / 0", {"tags": ["raises-exception"]}, True),
]
"""The output of a cell, its metadata, and whether the output is allowed in a student's copy."""


@pytest.mark.prove
def test_only_an_open_exercise_may_raise_a_stubs_error(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "notebooks" / "01-made-up").mkdir(parents=True)
    cells = [new_code_cell(text, metadata=metadata) for text, metadata, _ in CELLS]
    nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks" / "01-made-up" / "made_up.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), tmp_path / "notebooks" / "welcome.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "notebooks", "--nbval-current-env", "-rA", "-q"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    found = re.findall(r"^(PASSED|FAILED) notebooks/01-made-up/made_up.ipynb::Cell (\d+)", run.stdout, re.M)
    assert {int(number): word for word, number in found} == {
        number: "PASSED" if may else "FAILED" for number, (_, _, may) in enumerate(CELLS)
    }, run.stdout
    assert "welcome" not in run.stdout
