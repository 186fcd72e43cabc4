"""A notebook that a kernel runs: what it starts with, and when it stops."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse.grading import environment
from lmcourse.grading.environment import fresh_seed, kernel_environment
from lmcourse.grading.preprocessors import run_notebook
from lmcourse.grading.preprocessors.run_notebook import RunNotebook


def ran(folder: Path, *cells: str, **settings: Any) -> NotebookNode:
    """A notebook run in a folder, as grading runs it."""
    nb = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    about = {"nbgrader": {}, "metadata": {"path": str(folder)}}
    return RunNotebook(shutdown_kernel="immediate", **settings).preprocess(nb, about)[0]


def text(nb: NotebookNode) -> list[str]:
    return ["".join(output.get("text", output.get("evalue", "")) for output in cell.outputs) for cell in nb.cells]


def test_nothing_beside_the_notebook_or_at_home_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, home = tmp_path / "beside", tmp_path / "home"
    startup = home / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    beside.mkdir()
    stolen = "import builtins; builtins.STOLEN = __name__"
    for name in ("colorsys", "ipykernel_launcher", "pathlib", "sitecustomize", "usercustomize", "ipython_config"):
        (beside / f"{name}.py").write_text(stolen)
    (startup / "00.py").write_text(stolen)
    (home / "start.py").write_text(stolen)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONSTARTUP", str(home / "start.py"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", os.environ.get("PYTHONPATH", ""), ""]))
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    show = "import builtins, colorsys, sys; print(getattr(builtins, 'STOLEN', None), '' in sys.path)"
    assert text(ran(beside, show)) == ["None False\n"]


def test_a_kernel_gets_absolute_paths_and_a_profile_of_its_own(tmp_path: Path) -> None:
    given = {"PYTHONPATH": os.pathsep.join(["", ".", "/opt/lib"]), "PYTHONSTARTUP": "x.py", "KEPT": "1"}
    made = kernel_environment(tmp_path, 5, given)
    assert made["PYTHONPATH"] == os.pathsep.join([str(Path.cwd()), "/opt/lib"])
    assert (made["IPYTHONDIR"], made[environment.SEED], made["KEPT"]) == (str(tmp_path), "5", "1")
    assert "PYTHONSTARTUP" not in made
    assert "PYTHONPATH" not in kernel_environment(tmp_path, base={})


def test_the_seed_is_given_or_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.SEED, "12")
    assert fresh_seed() == 12
    monkeypatch.delenv(environment.SEED)
    assert len({fresh_seed() for _ in range(5)}) == 5


def test_a_notebook_that_takes_too_long_in_all_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 0, 2])  # at the start, and before each cell
    monkeypatch.setattr(run_notebook, "monotonic", lambda: next(clock))
    nb = ran(tmp_path, "print('first')", "print('second')", total_timeout=1)
    assert text(nb) == ["first\n", ""]
    assert "longer than 1 s in all" in nb.metadata["lmcourse"]["problem"]
