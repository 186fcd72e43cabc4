"""The cells that are not run: those that only display or check something, and the course's own that no answer needs.

They would cost most of the time of a submission, for figures that nobody looks at and small models that are trained to
be looked at; and a check would put right answers into the notebook's own process. A cell is judged by its text alone.

A cell only displays if each statement plainly does. What a learner wrote or changed is otherwise always run, and so is
each cell of the course's that mentions a name which what is run refers to: it may give the name its meaning, or change
it. Names of imports and of answers do not count where they are only used; that the course's cells change nothing behind
them is a matter of the course (`tests/grading/test_examine_cells.py`).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Sequence

from lmcourse.grading.examination.code_cells import Cell

DISPLAY_MODULES = ("lmcourse.notebook", "lmcourse.plots", "lmcourse.widgets", "lmcourse.exercises", "lmcourse.chapters")
"""Where the functions come from that show or check something, and give nothing that a cell needs."""

SETUP_FUNCTION = "lmcourse.notebook.start"

INPUT_BUILTINS = frozenset({"dict", "float", "int", "len", "list", "range", "set", "sorted", "str", "tuple"})
"""Python's own functions that inputs are made with."""

NAME_BINDING_EXPRESSIONS = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that leave something behind."""

DYNAMIC_NAMES = {"eval", "exec", "globals", "locals", "vars", "__import__"}
"""Names by which code gets at others that it does not mention."""


def display_names(cells: Sequence[Cell]) -> frozenset[str]:
    """The names by which a notebook calls what only displays, and those of `INPUT_BUILTINS`.

    A name that is bound in another way too is not among them: it may be anything then.
    """
    imports = [found for cell in cells for found in cell.imported]
    others = {name for cell in cells for name in cell.bound}
    others |= {name for name, full in imports if not _is_display(full)}
    shown = {*INPUT_BUILTINS, *(name for name, full in imports if _is_display(full))}
    return frozenset() if "*" in others else frozenset(shown - others)


def only_displays(cell: ast.Module, names: frozenset[str]) -> bool:
    """Whether every statement of a cell calls one of these names, and nothing else, and keeps nothing.

    Args:
        cell: its syntax tree.
        names: from `display_names` of all cells.
    """
    return bool(cell.body) and all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _displays(statement.value, names)
        for statement in cell.body
    )


def unneeded_cells(
    cells: Sequence[Cell], provided_cells: Collection[str], names: Collection[str], unchanged: Collection[str] = ()
) -> set[int]:
    """The numbers of the course's own cells that no answer needs.

    Args:
        cells: of the notebook.
        provided_cells: the texts of the course's own cells.
        names: those that are asked for in the end.
        unchanged: those of which the course's cells change nothing where they only use them.
    """
    provided = {text.strip() for text in provided_cells}
    waiting = [cell for cell in cells if cell.text.strip() in provided]
    modules = {name for cell in cells for name, _ in cell.imported}
    used = {*modules, *dir(builtins), *unchanged}
    touched = {cell.number: (cell.loaded - used) | _names_given(cell) for cell in waiting}
    needed = {*names}.union(*(cell.loaded for cell in cells if cell.number not in touched))
    if needed & DYNAMIC_NAMES:
        return set()
    while found := [cell for cell in waiting if touched[cell.number] & needed]:
        needed = needed.union(*(cell.loaded for cell in found))
        waiting = [cell for cell in waiting if cell not in found]
    return {cell.number for cell in waiting}


def _displays(call: ast.Call, names: frozenset[str]) -> bool:
    inside = [*ast.walk(call)]
    calls = [node.func for node in inside if isinstance(node, ast.Call)]
    return (
        _root(call.func) not in INPUT_BUILTINS
        and all(_root(function) in names for function in calls)
        and not any(isinstance(node, NAME_BINDING_EXPRESSIONS) for node in inside)
    )


def _root(function: ast.expr) -> str:
    """The name that a call begins with: `plots` of `plots.bars(3).show()`."""
    while isinstance(function, ast.Attribute | ast.Call):
        function = function.value if isinstance(function, ast.Attribute) else function.func
    return function.id if isinstance(function, ast.Name) else ""


def _is_display(name: str) -> bool:
    return name != SETUP_FUNCTION and any(name == module or name.startswith(f"{module}.") for module in DISPLAY_MODULES)


def _names_given(cell: Cell) -> frozenset[str]:
    """The names that a cell gives a meaning to."""
    return cell.bound | {name for name, _ in cell.imported}
