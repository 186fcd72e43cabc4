"""The class of attacks. Most are a copy of the release with wrong answers and a few additional lines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell

COURSE, HOME, PORT = "@COURSE@", "@HOME@", "@PORT@"
"""Placeholders for the course's folder, the grader's home folder and a listening port, which attackers may know."""

START = "\n".join(
    [
        *(f"import {name}" for name in ("collections", "itertools", "math", "os", "sys", "time", "torch")),
        "from lmcourse.notebook import check",
    ]
)
"""The first cell. Demonstration cells are left out, so that a run takes only the time of the attack."""

WRONG = "return -12345.678"  # the body of an answer that is wrong in all cases of all exercises
# The grade id of a test with `assert`, as in teachers' own notebooks. Such a test does not protect marks: see `School`.
PLAIN = "plain_test"
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
"""Helpers for code that tries forbidden actions and prints how they failed."""

Build = Callable[[NotebookNode], NotebookNode | bytes]
Edit = Callable[[NotebookNode], None]


@dataclass(frozen=True)
class Attack:
    """One attacker. None of the answers is right, so every point is a success for the attacker."""

    name: str  # of the attacker and of the submitted folder
    what: str  # one line on the attack
    build: Build  # makes the notebook from the release
    reason: str = r"\S"  # a pattern that must occur in the reason of the result
    beside: Mapping[str, str | Path] = field(default_factory=dict)  # further files by name; a path stands for a link
    link: Path | None = None  # the target if the notebook is a link


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
        first: the text of a cell before all exercises.
        every: the body of all answers that are functions; `NAME` in it stands for the exercise.
        value: the text of all answers that are values.
        last: the text of a cell after all exercises.
        edit: a function that makes further changes to the notebook.
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
    """Return only the course's own cells of a release."""
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
