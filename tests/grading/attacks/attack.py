"""What an attack is, and how most of them are made: a copy of the release with wrong answers and a few lines more."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell

COURSE, HOME, PORT = "@COURSE@", "@HOME@", "@PORT@"
"""Placeholders for the course's folder, the grader's home and a listening port, which an attacker may know."""

START = "import math\nimport os\nimport sys\nimport time\nimport torch\nfrom lmcourse.notebook import check"
"""The first cell. Cells that only show something are left out, so that a run costs what the attack costs."""

WRONG = "return -12345.678"
"""The body of an answer that is wrong in every case of every exercise."""

PLAIN = "plain_test"
"""The grade id of a test with `assert`, as a teacher's own notebook has them. It protects no marks: see `School`."""

TRYING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def trying(act):
    try: print("DONE", act())
    except BaseException as error: print(type(error).__name__, str(error)[:200])
def call(*args):
    done = libc.syscall(*[ctypes.c_long(each) if isinstance(each, int) else each for each in args])
    if done < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
"""
"""Helpers for code that does what should fail, and prints how it failed."""

Build = Callable[[NotebookNode], NotebookNode | bytes]
Edit = Callable[[NotebookNode], None]


@dataclass(frozen=True)
class Attack:
    """One attacker.

    Attributes:
        name: also the folder that they hand in.
        what: what they try, in one line.
        build: makes their notebook from the release. No answer in it is right: any point is a gain.
        reason: a pattern that is in the reason of the result.
        beside: more files of the folder handed in, by name; a path is a link to it.
        link: what the notebook is a link to, if it is one.
    """

    name: str
    what: str
    build: Build
    reason: str = r"\S"
    beside: Mapping[str, str | Path] = field(default_factory=dict)
    link: Path | None = None


def attack(
    name: str,
    what: str,
    first: str = "",
    *,
    every: str = WRONG,
    value: str = "-12345.678",
    last: str = "",
    reason: str = r"\S",
    edit: Edit = lambda nb: None,
    beside: Mapping[str, str | Path] | None = None,
) -> Attack:
    """Return an attack by code.

    Args:
        name, what, reason, beside: see `Attack`.
        first: a cell above all exercises.
        every: the body of every answer that is a function; `NAME` in it is the exercise.
        value: every answer that is a value.
        last: a cell below all exercises.
        edit: what else is done to the notebook.
    """

    def build(release: NotebookNode) -> NotebookNode:
        nb = bare(release)
        for cell in nb.cells:
            if is_answer(cell):
                cell.source = _answer(cell, every, value)
        extra = [new_code_cell(START), *([new_code_cell(dedent(first).strip())] if first else [])]
        nb.cells = [*extra, *nb.cells, *([new_code_cell(dedent(last).strip())] if last else [])]
        edit(nb)
        return nb

    return Attack(name, what, build, reason, beside or {})


def bare(release: NotebookNode) -> NotebookNode:
    """Return the course's own cells of a release, and no others."""
    nb = copy.deepcopy(release)
    nb.cells = [cell for cell in nb.cells if "nbgrader" in cell.metadata]
    return nb


def is_answer(cell: NotebookNode) -> bool:
    """Return True if a learner answers in this cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_check(cell: NotebookNode) -> bool:
    """Return True if this cell is graded."""
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _answer(cell: NotebookNode, every: str, value: str) -> str:
    name = cell.metadata.nbgrader.grade_id
    if not cell.source.startswith("def "):
        return f"{name} = {value}".replace("NAME", name)
    body = indent(dedent(every).strip(), "    ").replace("NAME", name)
    return f"def {name}(*args, **kwargs):\n{body}"
