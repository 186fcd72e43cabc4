"""Find cells that grading skips: figures, experiments and training runs that no printed solution needs.

A cell is needed if it defines or changes a name that a printed solution, a check or another needed cell looks up. A
cell changes a name if it assigns to it or into it (`x += 1`, `x.size = 3`, `del x[0]`). For a variable, any use counts
as a change, because it may change the variable's value (`layers.append(layer)`, `train(model)`). Functions, classes,
imports and answers do not change when they are used.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from lmcourse.exercises.forbidden_names import global_names

SETUP = "start"

DYNAMIC_NAMES = {"eval", "exec", "globals", "locals", "vars", "__import__"}
"""Functions with which code can use names that it does not mention."""

CHANGING_NAMES = {"setattr", "delattr"}
"""Functions that change their argument, even if it is a module or an answer."""


@dataclass(frozen=True)
class Code:
    """A code cell: its text, and whether grading always runs it, as for answers, checks and tasks."""

    text: str
    graded: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the cell."""
        return ast.parse(self.text)

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The global names that the cell looks up."""
        return frozenset(global_names(compile(self.tree, "<cell>", "exec", dont_inherit=True)))

    @cached_property
    def imported(self) -> frozenset[str]:
        """The names that the cell imports; `*` for all names of a module."""
        found = (node.names for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return frozenset((name.asname or name.name.split(".")[0]) for names in found for name in names)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The global names that the cell binds or deletes, including imports."""
        return frozenset(_stored(compile(self.tree, "<cell>", "exec", dont_inherit=True), outermost=True))

    @cached_property
    def changed(self) -> frozenset[str]:
        """The names that the cell assigns into, such as `x` in `x.size = 3` and in `x[0] += 1`."""
        parts = (node for node in ast.walk(self.tree) if isinstance(node, ast.Attribute | ast.Subscript))
        return frozenset(_root(part) for part in parts if not isinstance(part.ctx, ast.Load))

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that the cell binds, except imports, functions and classes."""
        definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        named = {node.name for node in self.tree.body if isinstance(node, definitions)}
        names = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        assigned = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        return self.bound - ((self.imported | named) - assigned)

    @property
    def sets_up(self) -> bool:
        """True if the cell only has imports or starts the notebook."""
        starts = any(isinstance(one, ast.Expr) and _root(one.value) == SETUP for one in self.tree.body)
        return starts or all(isinstance(one, ast.Import | ast.ImportFrom) for one in self.tree.body)


def unneeded_cells(cells: Sequence[Code], answers: Sequence[str]) -> set[int]:
    """Return the indices of the cells that no printed solution needs; `answers` are the names that answers define.

    A cell is needed only for later answers, because each answer is judged as soon as its own cell has run.
    """
    variables = {name for cell in cells for name in cell.variables if not (cell.graded and name in answers)}
    touched = [_touched(cell, variables) for cell in cells]
    wanted_until: dict[str, int] = {}  # for each needed name, the index of the last answer that needs it
    needed_until = {place: place for place, cell in enumerate(cells) if cell.graded}
    waiting = {**needed_until}
    while waiting:
        for place, until in waiting.items():
            if cells[place].loaded & DYNAMIC_NAMES or "*" in cells[place].imported:
                return set()
            for name in cells[place].loaded:
                wanted_until[name] = max(until, wanted_until.get(name, -1))
        waiting = {}
        for place, cell in enumerate(cells):
            until = max((wanted_until.get(name, -1) for name in touched[place]), default=-1)
            if not cell.graded and until > max(place, needed_until.get(place, -1)):
                waiting[place] = needed_until[place] = until
    return {place for place, cell in enumerate(cells) if place not in needed_until and not cell.sets_up}


def _touched(cell: Code, variables: set[str]) -> frozenset[str]:
    used = cell.loaded if cell.loaded & CHANGING_NAMES else cell.loaded & variables
    return cell.bound | cell.changed | used


def _stored(code: CodeType, *, outermost: bool) -> Iterator[str]:
    kinds = ("STORE_GLOBAL", "DELETE_GLOBAL", *(("STORE_NAME", "DELETE_NAME") if outermost else ()))
    yield from (step.argval for step in dis.get_instructions(code) if step.opname in kinds)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _stored(inner, outermost=False)


def _root(part: ast.expr) -> str:
    """Return the name that an expression begins with, such as `x` in `x.rows[0].size`."""
    while isinstance(part, ast.Attribute | ast.Subscript | ast.Call):
        part = part.func if isinstance(part, ast.Call) else part.value
    return part.id if isinstance(part, ast.Name) else ""
