"""Cells of the course's own that show how something behaves, and that no answer builds on.

They would cost most of the time of a submission: some train small models. What a learner wrote or changed is always
run, and so is each cell that mentions a name which what is run refers to: it may give the name its meaning, or change
it. Names of imports do not count where they are only used; that the course's cells change nothing behind them is a
matter of the course (`tests/grading/test_examine_cells.py`).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Sequence

from lmcourse.exercises.rules import global_names
from lmcourse.grading.examination.showing import bound, imported
from lmcourse.grading.examination.texts import Cell, compiled

DYNAMIC = {"eval", "exec", "globals", "locals", "vars", "__import__"}
"""Names by which code gets at others that it does not mention."""


def needless(cells: Sequence[Cell], handed_out: Collection[str], answers: Iterable[str]) -> set[int]:
    """The numbers of the cells that need not be run.

    Args:
        cells: of the notebook.
        handed_out: the texts of the course's own cells.
        answers: the names that are asked for in the end.
    """
    ours = {text.strip() for text in handed_out}
    waiting = [cell for cell in cells if cell.text.strip() in ours]
    loaded = {cell.place: {*global_names(compiled(cell.text))} for cell in cells}
    modules = {name for cell in cells for node in ast.walk(cell.tree) for name in imported(node)} | {*dir(builtins)}
    touched = {cell.place: (loaded[cell.place] - modules) | _given(cell) for cell in waiting}
    needed = {*answers}.union(*(loaded[cell.place] for cell in cells if cell not in waiting))
    if needed & DYNAMIC:
        return set()
    while found := [cell for cell in waiting if touched[cell.place] & needed]:
        needed = needed.union(*(loaded[cell.place] for cell in found))
        waiting = [cell for cell in waiting if cell not in found]
    return {cell.place for cell in waiting}


def _given(cell: Cell) -> set[str]:
    """The names that a cell gives a meaning to."""
    return {name for node in ast.walk(cell.tree) for name in (*bound(node), *imported(node))}
