"""The first cell of a notebook imports only what the notebook needs, and no other heavy package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmcourse.course.chapters import CHAPTERS

pytestmark = pytest.mark.prove

HEAVY = ("nbgrader", "sqlalchemy", "transformers", "torch._dynamo", "sympy", "pandas", "tensorboard")
"""Packages that take half a second or more to import."""


def test_no_first_cell_imports_a_heavy_package(course: Path) -> None:
    """All first cells run in one process."""
    cells = []
    for chapter in CHAPTERS:
        notebook = json.loads((course / "notebooks" / chapter.id / f"{chapter.topic}.ipynb").read_text("utf-8"))
        first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        cells.append("".join(first["source"]))
    program = "\n".join([*cells, "import sys", f"print([name for name in {HEAVY} if name in sys.modules])"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=course, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
