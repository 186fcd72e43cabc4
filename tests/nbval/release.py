"""Which cells of a student's copy need not run, because the solution's run has shown what they do.

Of the copy it is to be proved that it runs with the stubs in place. A cell that is the solution's own, and that no
stub reaches, does there what it does in the solution, where `--nbval solutions` runs it.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Sequence
from pathlib import Path

import nbformat

from lmcourse.grading.examination.code_cells import Cell, cells_of, compile_cell
from lmcourse.grading.examination.skipped_cells import DYNAMIC_NAMES, unneeded_cells

_BUILTINS = {*dir(builtins)}

ANNOTATIONS = "__annotations__"
"""Where Python notes the type in `x: int = 1`; no cell reads it."""


def code_of(path: Path) -> list[str]:
    """The code cells of a notebook."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def shown_by_the_solution(release: Sequence[str], solution: Sequence[str]) -> set[int]:
    """The numbers, from 0 on, of the cells that need not run.

    Args:
        release: the code cells of the student's copy.
        solution: those of the solution; none need not run if they are not as many.
    """
    if len(release) != len(solution):
        return set()
    same = {ours for ours, theirs in zip(release, solution, strict=True) if ours == theirs}
    cells = cells_of(release)
    reached = _reached([cell for cell in cells if cell.text in same], [cell for cell in cells if cell.text not in same])
    return {number - 1 for number in unneeded_cells(cells, same, reached)}


def _reached(same: Sequence[Cell], stubs: Sequence[Cell]) -> set[str]:
    """The names that stubs give a meaning to, and all that cells make of these: `rows` of `rows.append(answer(3))`."""
    imported = {name for cell in same for name, _ in cell.imported}
    mentioned = {cell.number: _mentioned(cell) - imported - (_BUILTINS - DYNAMIC_NAMES) for cell in same}
    reached = set().union(*(_given(cell) for cell in stubs))
    waiting = {*mentioned}
    while found := {number for number in waiting if mentioned[number] & (reached | DYNAMIC_NAMES)}:
        reached = reached.union(*(mentioned[number] for number in found))
        waiting -= found
    return reached


def _mentioned(cell: Cell) -> set[str]:
    return {*cell.loaded, *_given(cell)} - {ANNOTATIONS}


def _given(cell: Cell) -> set[str]:
    instructions = dis.get_instructions(compile_cell(cell.text))
    return {str(one.argval) for one in instructions if one.opname in ("STORE_NAME", "STORE_GLOBAL")} - {ANNOTATIONS}
