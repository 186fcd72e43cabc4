"""What `pytest --nbval solutions` and `pytest --nbval notebooks` mean.

`solutions/` is the reference: each cell runs, and its output must be the one that is stored.

`notebooks/` is handed out without outputs, so nothing is compared there. Every cell must run with the stubs in place;
only an exercise may raise, in the cell for its answer or the check under it, and only what a stub raises.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

collect_ignore = ["notebooks/welcome.ipynb"]  # written by `lmcourse lab`, from a learner's progress

UNSOLVED = ("NotImplementedError", "AssertionError", "NameError")
"""The errors that cells of an open exercise raise: the stub, its check, a name that is not defined yet."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of notebooks: `make prove` chooses them by it."""
    for item in items:
        if hasattr(item, "cell"):
            item.add_marker("cell")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Run a cell of the release without comparing; let an exercise raise what an open one does."""
    cell = getattr(item, "cell", None)
    if cell is None or not item.path.is_relative_to(HERE / "notebooks"):
        return (yield)
    item.options["check"] = False
    if not is_exercise(cell):
        return (yield)
    item.options["check_exception"] = True
    result = yield
    for output in item.test_outputs:
        if output["output_type"] == "error" and output["ename"] not in UNSOLVED:
            item.raise_cell_error("An open exercise may not raise this", "\n".join(output["traceback"]))
    return result


def is_exercise(cell: Any) -> bool:
    """Return whether this is the cell for an answer, or the check of one."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("solution") or marks.get("grade"))
