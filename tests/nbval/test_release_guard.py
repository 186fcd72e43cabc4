"""`pytest --nbval notebooks` can fail: the guard in conftest.py lets only open exercises raise."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

SOLUTION = {"nbgrader": {"solution": True, "grade": False}}
CHECK = {"nbgrader": {"solution": False, "grade": True}}
RAISES = {"tags": ["raises-exception"]}

CELLS: list[tuple[str, dict[str, Any], bool]] = [
    ("x = 1", {}, True),
    ("def f():\n    raise NotImplementedError", SOLUTION, True),
    ("f()", CHECK, True),
    ("raise NotImplementedError", SOLUTION, True),
    ("undefined", CHECK, True),
    ("assert x == 2", CHECK, True),
    ("1 / 0", CHECK, False),
    ("[][0]", SOLUTION, False),
    ("undefined", {}, False),
    ("f()", {}, False),
    ("assert x == 2", {}, False),
    ("1 / 0", RAISES, True),
    ("x", {}, True),
]
"""What a cell says, its metadata, and whether it may say so in a student's copy."""


@pytest.fixture(scope="module")
def verdicts(course: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a real run says of each made-up cell."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(course / "conftest.py", root)
    folder = root / "notebooks" / "01-made-up"
    folder.mkdir(parents=True)
    cells = [new_code_cell(source, metadata=metadata) for source, metadata, _ in CELLS]
    nbformat.write(new_notebook(cells=cells), folder / "made_up.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), root / "notebooks" / "welcome.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "notebooks", "--nbval-current-env", "-rA", "-q"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    return {cell: word for word, cell in re.findall(r"^(PASSED|FAILED|ERROR) (\S+::Cell \d+)", run.stdout, re.M)}


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_only_an_open_exercise_may_raise_and_only_what_a_stub_raises(verdicts: dict[str, str], number: int) -> None:
    expected = "PASSED" if CELLS[number][2] else "FAILED"
    assert verdicts[f"notebooks/01-made-up/made_up.ipynb::Cell {number}"] == expected


def test_the_welcome_page_is_not_a_notebook_of_the_course(verdicts: dict[str, str]) -> None:
    assert len(verdicts) == len(CELLS)
