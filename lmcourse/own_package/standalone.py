"""Find the statements that a notebook's function needs in order to run alone: imports and helpers."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from IPython.core.inputtransformer2 import TransformerManager

_KNOWN = frozenset(dir(builtins)) | {"__name__", "__doc__"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class CannotStandAloneError(Exception):
    """A function needs something that cannot be included; the message says what, in one line."""


@dataclass(frozen=True)
class Statement:
    """A top-level statement of a cell; an import of several names becomes several statements.

    Attributes:
        needs: the global names that it reads when it runs or is called.
        kind: "import", "definition", or "other" for a statement that computes something.
        runs: whether the names that it needs must be defined before it, as for an assignment.
    """

    text: str
    names: frozenset[str]
    needs: frozenset[str]
    kind: str
    runs: bool = False


def read_statements(cell: str) -> list[Statement]:
    """Return the statements of a cell in order; empty if the cell is not Python.

    Lines that only IPython understands, such as `%timeit`, count as other statements.
    """
    text = cast(Any, TransformerManager)().transform_cell(cell)
    try:
        nodes = ast.parse(text).body
    except (SyntaxError, ValueError):
        return []
    lines = text.split("\n")
    return [statement for node in nodes for statement in _statements(node, lines)]


def _statements(node: ast.stmt, lines: Sequence[str]) -> Iterator[Statement]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            one = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], 0)
            name = alias.asname or alias.name.split(".")[0]
            yield Statement(ast.unparse(one), frozenset({name}), frozenset(), "import")
        return
    text = _text(node, lines)
    names, needs = _names(text)
    kind = "definition" if isinstance(node, _DEFINITIONS) else "other"
    yield Statement(text, names, needs, kind, runs=isinstance(node, ast.Assign | ast.AnnAssign))


def _text(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return a statement's text with the comments directly above it, without the marks of a printed solution."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    kept = (line for line in lines[first : node.end_lineno] if not line.strip().startswith(("### BEGIN", "### END")))
    return "\n".join(kept)


def _names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a statement defines at the top level, and the global names that it reads anywhere."""
    try:
        top = symtable.symtable(text, "<cell>", "exec")
    except SyntaxError:  # `await` outside a function works in a notebook, but not in Python
        return frozenset(), frozenset()
    defined = frozenset(symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned())
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for table in _below(top):
        read |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return defined, frozenset(read) - _KNOWN


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _below(child)


def needed(cells: Sequence[str], at: int, name: str, others: Iterable[str] = ()) -> tuple[list[Statement], set[str]]:
    """Return the statements that the answer in cell `at` needs, in order, and the `others` that they use.

    A name has its last definition in the answer's cell or earlier cells, as in a check; definitions of `others` are not
    included. Raises CannotStandAloneError if a name is not defined in an earlier cell, comes from lmcourse, or is
    computed.
    """
    rows = [statement for cell in cells[: at + 1] for statement in read_statements(cell)]
    waiting = [_provider(name, rows)]
    found, used, others = set(waiting), set[str](), frozenset(others) - {name}
    while waiting:
        number = waiting.pop()
        for each in sorted(rows[number].needs):
            if each in others:
                used.add(each)
                continue
            provider = _provider(each, rows[:number] if rows[number].runs else rows)
            if provider not in found:
                found.add(provider)
                waiting.append(provider)
    return [rows[number] for number in sorted(found)], used


def _provider(name: str, statements: Sequence[Statement]) -> int:
    numbers = [number for number, one in enumerate(statements) if name in one.names]
    if not numbers:
        raise CannotStandAloneError(f"it needs `{name}`, which no cell above it defines")
    last = statements[numbers[-1]]
    if last.kind == "import" and last.text.split()[1].split(".")[0] == "lmcourse":
        raise CannotStandAloneError(f"it needs `{name}` from lmcourse, but your package must run without lmcourse")
    if last.kind == "other":
        raise CannotStandAloneError(f"it needs `{name}`, a value that a cell computes: compute it in a function")
    return numbers[-1]
