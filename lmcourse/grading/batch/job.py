"""A grading job as plain data: one notebook, and what a worker needs to examine it."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lmcourse.grading.intake.files import NOT_COPIED
from lmcourse.grading.sandbox import Isolation
from lmcourse.grading.sandbox.filesystem import PACKAGE

if TYPE_CHECKING:
    from nbformat import NotebookNode  # a worker, which only reads jobs, does without


@dataclass(frozen=True)
class ExaminationSettings:
    """Settings of a grading run that hold for all its notebooks.

    Attributes:
        isolation: how a notebook is kept apart from the machine.
        seed: of the hidden cases.
        cell_seconds: for one cell.
        total_seconds: for a whole notebook.
        private: folders that no notebook may see (`private_folders.private_folders`).
    """

    isolation: Isolation
    seed: int
    cell_seconds: float = 120.0
    total_seconds: float = 900.0
    private: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExaminationJob:
    """The job of examining one notebook.

    Attributes:
        assignment: the id of its chapter, which names the exercises.
        cells: its code cells, in order.
        answer_cells: the numbers, from 1 on, of those for the answers, by exercise.
        settings: how.
        data: the assignment's data files, which the notebook finds in its working folder.
        modules: what the course's own notebook imports, worth loading before a notebook comes.
        provided_cells: the code cells that the course put into the notebook, without those for answers and checks.
        version: of the exercises; a worker on another machine has to have the same.
    """

    assignment: str
    cells: tuple[str, ...]
    answer_cells: dict[str, int]
    settings: ExaminationSettings
    data: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    provided_cells: tuple[str, ...] = ()
    version: str = ""

    def to_json(self) -> str:
        """One line of JSON; `from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> ExaminationJob:
        """The job from what `to_json` gave. Our own processes send it, so it is not checked."""
        data = json.loads(line)
        return cls(
            data["assignment"],
            tuple(data["cells"]),
            dict(data["answer_cells"]),
            ExaminationSettings(**(data["settings"] | {"private": tuple(data["settings"]["private"])})),
            tuple(data["data"]),
            tuple(data["modules"]),
            tuple(data["provided_cells"]),
            data["version"],
        )


def job_for(source: Path, nb: NotebookNode, settings: ExaminationSettings) -> ExaminationJob:
    """The job of examining a submission.

    Args:
        source: the course's own notebook of the assignment; its folder has the assignment's id and data.
        nb: the submission, after `RestoreCells`.
        settings: how.
    """
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    return ExaminationJob(
        source.parent.name,
        tuple(cell.source for cell in cells),
        answer_cells_of(cells),
        settings,
        data_files_of(source),
        imported_modules(source),
        provided_cells_of(source),
        exercises_version(),
    )


def answer_cells_of(cells: Sequence[NotebookNode]) -> dict[str, int]:
    """Of code cells, the numbers of those for the answers, by exercise."""
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    return {mark["grade_id"]: number for number, mark in enumerate(marks, 1) if mark.get("solution")}


@cache
def exercises_version() -> str:
    """A digest of the code of all exercises, from which marks come."""
    digest = hashlib.sha256()
    rooms = (PACKAGE / "exercises", PACKAGE / "chapters", PACKAGE / "report")
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def data_files_of(source: Path) -> tuple[str, ...]:
    """The data files and folders of an assignment: what lies beside its notebook, without what never travels."""
    beside = sorted(path for path in source.parent.iterdir() if path.suffix != ".ipynb")
    return tuple(str(path) for path in beside if not any(fnmatch(path.name, pattern) for pattern in NOT_COPIED))


@cache
def imported_modules(source: Path) -> tuple[str, ...]:
    """The modules that the course's own notebook imports, and what it imports from this package: the names may be
    modules."""
    found: dict[str, None] = {}
    for text in provided_cells_of(source):
        for node in ast.walk(_parsed(text)):
            if isinstance(node, ast.Import):
                found |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found[node.module] = None
                if node.module.partition(".")[0] == PACKAGE.name:
                    found |= dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


@cache
def provided_cells_of(source: Path) -> tuple[str, ...]:
    """The code cells of the course's own notebook that are the same in what students receive."""
    import nbformat

    cells = nbformat.read(source, as_version=4).cells
    return tuple(cell.source for cell in cells if cell.cell_type == "code" and "nbgrader" not in cell.metadata)


def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:  # a magic
        return ast.Module([], [])
