"""The statements of a cell: which names each gives and looks up, and whether it computes anything."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from lmcourse.exercises.forbidden_names import global_names
from lmcourse.grading.examination.code_cells import (
    MAX_KEPT_CELL_CHARS,
    Cell,
    bound_names,
    compile_statement,
    future_imports,
    imported_names,
)

PLAIN_EXPRESSIONS = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.expr_context),
    *(ast.Subscript, ast.BinOp, ast.BitOr, ast.UnaryOp, ast.USub, ast.Starred),
)
"""What names something that is there: constants, attributes, types with parameters, and collections of these."""


@dataclass(frozen=True)
class Statement:
    """A statement of a cell.

    Attributes:
        line: where it begins.
        only_defines: whether it only imports, defines, or names a constant.
        loaded: the global names that its code looks up.
        given: the names that it gives a meaning to, or changes.
    """

    line: int
    only_defines: bool
    loaded: frozenset[str]
    given: frozenset[str]


def statements_of(cell: Cell) -> tuple[Statement, ...]:
    """The statements of a cell. Those of a cell that many notebooks have are remembered."""
    return _kept_statements(cell.text) if len(cell.text) <= MAX_KEPT_CELL_CHARS else _statements(cell.text)


def _statements(text: str) -> tuple[Statement, ...]:
    tree = ast.parse(text)
    future = future_imports(tree)
    return tuple(_statement(one, future) for one in tree.body)


_kept_statements = lru_cache(maxsize=512)(_statements)


def _statement(statement: ast.stmt, future: list[ast.stmt]) -> Statement:
    nodes = [*ast.walk(statement)]
    given = frozenset(name for node in nodes for name in (*bound_names(node), *imported_names(node)))
    loaded = frozenset(global_names(compile_statement(statement, future)))
    return Statement(statement.lineno, _only_defines(statement), loaded, given)


def _only_defines(statement: ast.stmt) -> bool:
    """Whether a statement computes nothing; decorators, defaults, annotations and base classes could."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [node for node in ast.walk(statement.args) if isinstance(node, ast.arg)]
        outside = [*statement.decorator_list, *statement.args.defaults, *statement.args.kw_defaults, statement.returns]
        return _are_plain([*outside, *(argument.annotation for argument in arguments)])
    if isinstance(statement, ast.ClassDef):
        outside = [*statement.decorator_list, *statement.bases, *(keyword.value for keyword in statement.keywords)]
        return _are_plain(outside) and all(map(_only_defines, statement.body))
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        annotation = [statement.annotation] if isinstance(statement, ast.AnnAssign) else []
        return all(isinstance(one, ast.Name) for one in targets) and _are_plain([statement.value, *annotation])
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _are_plain(values: list[ast.expr | None]) -> bool:
    return all(isinstance(node, PLAIN_EXPRESSIONS) for value in values if value for node in ast.walk(value))
