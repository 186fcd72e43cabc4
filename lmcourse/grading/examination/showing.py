"""Cells that only show or check something: whoever grades from outside has no use for them.

They would cost most of the time of a submission, for figures that nobody looks at, and a check would put right answers
into the notebook's own process. A cell is judged by its text alone, and run unless it is plain that it shows only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

SHOWING = ("lmcourse.notebook", "lmcourse.plots", "lmcourse.widgets", "lmcourse.exercises", "lmcourse.chapters")
"""Where the functions come from that show or check something, and give nothing that a cell needs."""

PREPARING = "lmcourse.notebook.start"

HARMLESS = frozenset({"dict", "float", "int", "len", "list", "range", "set", "sorted", "str", "tuple"})
"""Python's own functions that inputs are made with."""

KEEPS = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that leave something behind."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def showing_names(cells: Sequence[ast.Module]) -> frozenset[str]:
    """The names by which a notebook calls what only shows, and `HARMLESS` ones. Bound in another way too, one is not
    among them: it may be anything then."""
    nodes = [node for cell in cells for node in ast.walk(cell)]
    imports = [found for node in nodes for found in imported(node).items()]
    others = {name for node in nodes for name in bound(node)} | {name for name, full in imports if not _shows(full)}
    shown = {*HARMLESS, *(name for name, full in imports if _shows(full))}
    return frozenset() if "*" in others else frozenset(shown - others)


def only_shows(cell: ast.Module, names: frozenset[str]) -> bool:
    """Whether every statement of a cell calls one of these names, and nothing else, and keeps nothing.

    Args:
        cell: its syntax tree.
        names: from `showing_names` of all cells.
    """
    return bool(cell.body) and all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _is_shown(statement.value, names)
        for statement in cell.body
    )


def _is_shown(call: ast.Call, names: frozenset[str]) -> bool:
    inside = [*ast.walk(call)]
    calls = [node.func for node in inside if isinstance(node, ast.Call)]
    return (
        _root(call.func) not in HARMLESS
        and all(_root(function) in names for function in calls)
        and not any(isinstance(node, KEEPS) for node in inside)
    )


def _root(function: ast.expr) -> str:
    """The name that a call begins with: `plots` of `plots.bars(3).show()`."""
    while isinstance(function, ast.Attribute | ast.Call):
        function = function.value if isinstance(function, ast.Attribute) else function.func
    return function.id if isinstance(function, ast.Name) else ""


def _shows(name: str) -> bool:
    return name != PREPARING and any(name == module or name.startswith(f"{module}.") for module in SHOWING)


def imported(node: ast.AST) -> dict[str, str]:
    """The names that an import gives a meaning to, and what it is: {"F": "torch.nn.functional"}."""
    if isinstance(node, ast.Import):
        named = {alias.asname: alias.name for alias in node.names if alias.asname}
        return named | {top: top for alias in node.names if not alias.asname for top in [alias.name.split(".")[0]]}
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
    return {}


def bound(node: ast.AST) -> Iterator[str]:
    """The names that a node other than an import gives a meaning to, or changes an attribute or an item of."""
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name):
            yield node.id
