"""`pip install lmcourse` without an extra is the library: it needs no Jupyter and no nbgrader."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
HIDE = """
import sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in {hidden!r} else self.finder.find_spec(name, *rest)

sys.meta_path[:] = map(Hiding, sys.meta_path)
"""


def installed_with(name: str, found: set[str]) -> None:
    """Add a package and all that it requires without an extra."""
    if name in found:
        return
    found.add(name)
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return  # of another system
    for line in map(Requirement, lines):
        if line.marker is None or line.marker.evaluate({"extra": ""}):
            installed_with(canonicalize_name(line.name), found)


def run_bare(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that cannot import what `pip install lmcourse` does not install."""
    found: set[str] = set()
    installed_with("lmcourse", found)
    owners = importlib.metadata.packages_distributions()
    hidden = {module for module, names in owners.items() if not {*map(canonicalize_name, names)} & found}
    assert {"jupyterlab", "nbgrader", "matplotlib", "IPython"} <= hidden
    command = [sys.executable, "-c", HIDE.format(hidden=hidden) + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_page_of_the_library_runs_without_jupyter(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S))
    done = run_bare(program, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("account --model llama-3-8b", ""),
        ("train --steps 1 --out run", ""),
        ("lab", "lmcourse: this needs traitlets: python -m pip install 'lmcourse[course]'\n"),
        ("grade x.ipynb", "lmcourse: this needs nbformat: python -m pip install 'lmcourse[course]'\n"),
    ],
)
def test_a_command_runs_or_names_what_it_needs(command: str, said: str, tmp_path: Path) -> None:
    program = f"from lmcourse.cli import main\nsys.exit(main({command.split()!r}))"
    done = run_bare(program, tmp_path)
    assert (done.returncode, done.stderr if said else "") == (2 if said else 0, said), done.stderr
