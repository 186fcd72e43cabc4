"""Which cells of a student's copy need not run, because the solution's run has shown what they do.

Of the copy it is to be proved that it runs with the stubs in place. A cell that is the solution's own, and that no
stub reaches, does there what it does in the solution, where `--nbval solutions` runs it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from pathlib import Path

import nbformat

from lmcourse.grading.cells import Cell, read_cell

_BUILTINS = {*dir(builtins)}
_DYNAMIC = {"eval", "exec", "globals", "locals", "vars", "__import__"}
"""Names by which code gets at others that it does not mention."""


def code_of(path: Path) -> list[str]:
    """Return the code cells of a notebook."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def shown_by_the_solution(release: Sequence[str], solution: Sequence[str]) -> set[int]:
    """Return the numbers, from 0, of the cells that need not run.

    Args:
        release: the code cells of the student's copy.
        solution: those of the solution. If they are not as many, every cell has to run.
    """
    if len(release) != len(solution):
        return set()
    cells = [read_cell(number, text) for number, text in enumerate(release)]
    run = {number for number, text in enumerate(release) if text != solution[number]}
    imported = {name for cell in cells if cell.number not in run for name in imports_in(cell.text)}
    reached = {name for cell in cells if cell.number in run for name in cell.given}
    while found := [
        cell for cell in cells if cell.number not in run and _mentioned(cell, imported) & (reached | _DYNAMIC)
    ]:
        run |= {cell.number for cell in found}
        reached |= {name for cell in found for name in _mentioned(cell, imported)}
    needed = {name for cell in cells if cell.number in run for name in cell.loaded}
    if needed & _DYNAMIC:
        return set()
    while found := [cell for cell in cells if cell.number not in run and needed & cell.given.keys()]:
        run |= {cell.number for cell in found}
        needed |= {name for cell in found for name in cell.loaded}
    return {cell.number for cell in cells} - run


def _mentioned(cell: Cell, imported: set[str]) -> set[str]:
    return {*cell.loaded, *cell.given} - imported - (_BUILTINS - _DYNAMIC)


def imports_in(text: str) -> set[str]:
    """Return the names that the imports of a cell bind."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name.partition(".")[0] for node in nodes for alias in node.names}
