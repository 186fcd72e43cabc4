"""What an attack is, and how most of them are made: a copy of the release with wrong answers and a few lines more."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

from lmcourse.grading.examination_result import EvidenceKind
from nbformat import NotebookNode

from lmcourse.grading.cells import new_code_cell

COURSE, HOME, PORT = "@COURSE@", "@HOME@", "@PORT@"
"""Stand for the course's folder, the grader's home and a listening port: an attacker may know where they are."""

START = "import math\nimport os\nimport sys\nimport time\nimport torch\nfrom lmcourse.notebook import check"
"""The first cell. The cells that only show something are left out: what a run costs is then the attack's."""

WRONG = "return -12345.678"
"""The body of an answer that no case of any exercise takes for right, an expected error included."""

EARNED_NOTHING = r"\S"

Build = Callable[[NotebookNode], NotebookNode | bytes]
Edit = Callable[[NotebookNode], None]


@dataclass(frozen=True)
class Attack:
    """One attacker.

    Attributes:
        name: also the folder that they hand in.
        what: what they try, in one line.
        build: makes their notebook from the release. No answer in it is right: any point is a gain.
        kinds: evidence, of which at least one kind has to be recorded; none if honest work could look the same.
        reason: what the reason of the result has to say.
        beside: more files of the folder handed in, by name; a path is a link to it.
        link: what the notebook is a link to, if it is one.
        gain: the points that it earns all the same.
    """

    name: str
    what: str
    build: Build
    kinds: tuple[EvidenceKind, ...] = ()
    reason: str = EARNED_NOTHING
    beside: Mapping[str, str | Path] = field(default_factory=dict)
    link: Path | None = None
    gain: float = 0.0


def attack(
    name: str,
    what: str,
    first: str = "",
    *kinds: EvidenceKind,
    every: str = WRONG,
    value: str = "-12345.678",
    last: str = "",
    reason: str = EARNED_NOTHING,
    edit: Edit | None = None,
    beside: Mapping[str, str | Path] | None = None,
    gain: float = 0.0,
) -> Attack:
    """An attack by code.

    Args:
        name, what, reason, beside, gain: see `Attack`.
        first: a cell above all exercises.
        kinds: see `Attack`.
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
        if edit:
            edit(nb)
        return nb

    return Attack(name, what, build, kinds, reason, beside or {}, gain=gain)


def bare(release: NotebookNode) -> NotebookNode:
    """The course's own cells of a release, and no others."""
    nb = copy.deepcopy(release)
    nb.cells = [cell for cell in nb.cells if "nbgrader" in cell.metadata]
    return nb


def is_answer(cell: NotebookNode) -> bool:
    """Whether a learner answers in this cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_check(cell: NotebookNode) -> bool:
    """Whether this cell is graded."""
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def find(nb: NotebookNode, identity: str) -> NotebookNode:
    """The cell with this nbgrader id."""
    found: list[NotebookNode] = [
        cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == identity
    ]
    return found[0]


def _answer(cell: NotebookNode, every: str, value: str) -> str:
    name = cell.metadata.nbgrader.grade_id
    if not cell.source.startswith("def "):
        return f"{name} = {value}".replace("NAME", name)
    body = indent(dedent(every).strip(), "    ").replace("NAME", name)
    return f"def {name}(*args, **kwargs):\n{body}"
