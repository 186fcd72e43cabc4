"""What `pytest --nbval solutions` and `pytest --nbval notebooks` mean.

`solutions/` is the reference: each cell runs, and its output must be the one that is stored.

`notebooks/` is handed out without outputs, so nothing is compared there. What is proved is that every cell runs with
the stubs in place, so the cells that no stub reaches are left to the solution; only an exercise may raise, in the cell
for its answer or the check under it, and only what a stub raises.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.nbval.release import code_of, shown_by_the_solution

HERE = Path(__file__).parent

collect_ignore = ["notebooks/welcome.ipynb"]  # written by `lmcourse lab`, from a learner's progress

UNSOLVED = ("NotImplementedError", "AssertionError", "NameError")
"""What the cells of an open exercise raise: the stub, its check, a name that nobody has defined."""


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval fork its kernels where that can be done, instead of loading PyTorch for each; CUDA survives no fork."""
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*"))
    if config.getoption("nbval", default=False) and sys.platform.startswith("linux") and not has_gpu:
        import nbval.kernel

        from tests.nbval.forked_kernels import ForkedKernelManager

        nbval.kernel.KernelManager = ForkedKernelManager


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Leave out the cells of the release that do there what the solution shows."""
    left_out = []
    cells = [item for item in items if hasattr(item, "cell") and item.path.is_relative_to(HERE / "notebooks")]
    for path, found in groupby(cells, lambda item: item.path):
        solution = HERE / "solutions" / path.relative_to(HERE / "notebooks")
        if solution.exists():
            numbers = shown_by_the_solution(code_of(path), code_of(solution))
            left_out += [item for item in found if item.cell_num in numbers]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


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
    """Whether this is the cell for an answer, or the check of one."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("solution") or marks.get("grade"))
