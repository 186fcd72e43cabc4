"""The code cells of a notebook as Python that a grader can read, and the names that they give a meaning to.

What is graded is plain Python, run by `exec`, not by IPython: the grader judges the rules on the text of a cell, so
what runs must be that text and not what an input transformer, an AST transformer or an event made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from types import CodeType

from lmcourse.exercises.failure import MAX_MESSAGE_CHARS, failure_of
from lmcourse.exercises.forbidden_names import global_names
from lmcourse.text import one_line

MAX_CELL_CHARS = 200_000
"""Characters of the longest cell that is run."""

MAX_NOTEBOOK_CHARS = 500_000
"""Characters of all cells that are run. The course's own notebooks have 20,000."""

MAX_DEPTH = 300
"""Levels of the deepest syntax tree that is read. Those of the course's own cells have some twenty."""

MAX_KEPT_CELL_CHARS = 4000
"""Characters of the longest cell that is kept for the next notebook: long ones are not the course's, and take room."""

TRANSPARENT_MAGICS = ("%%time", "%%capture")
"""Cell magics that run the cell below them like any other."""

TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""The flag with which a cell is compiled."""

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a strange text may raise."""

IPYTHON_LINE = re.compile(r"^(\s*)([%!?].*|\w[\w.]*\?\??\s*)$")
"""A line for IPython, not for Python."""


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Cell:
    """A code cell that is Python: its number, from 1 on, what is run of it, and the syntax tree of that.

    What else is read of it is read once: most cells of a class are the course's own, and the same in all notebooks.
    """

    number: int
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The global names that its code looks up."""
        return frozenset(global_names(compile_cell(self.text)))

    @cached_property
    def imported(self) -> tuple[tuple[str, str], ...]:
        """The names that its imports give a meaning to, and what each is, also inside of functions."""
        return tuple(found for node in self.nodes for found in imported_names(node).items())

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that anything but an import gives a meaning to, or changes."""
        return frozenset(name for node in self.nodes for name in bound_names(node))

    @cached_property
    def assigned(self) -> list[tuple[str, ast.stmt]]:
        """The names that its statements give to anything but a module, and which statement does."""
        return [(name, statement) for statement in self.tree.body for name in _names_bound(statement)]

    @cached_property
    def single_imports(self) -> list[tuple[str, str, ast.stmt]]:
        """The names that imports outside of functions bind; the text and the tree of an import of that name alone."""
        nodes = (node for node in module_level(self.tree) if isinstance(node, Import))
        return [(name, ast.unparse(one), one) for node in nodes for name, one in _single_imports(node)]

    @cached_property
    def defined(self) -> dict[str, int]:
        """The names that are given a meaning outside of functions, and the line that does it last."""
        return {
            name: node.lineno
            for node in module_level(self.tree)
            if isinstance(node, ast.stmt | ast.expr)
            for name in (*bound_names(node), *imported_names(node))
        }


def cells_of(sources: Sequence[str]) -> list[Cell]:
    """The code cells that are Python and not empty, up to `MAX_NOTEBOOK_CHARS`."""
    ends = accumulate(len(source) for source in sources)
    read = [source for source, end in zip(sources, ends, strict=True) if end <= MAX_NOTEBOOK_CHARS]
    known = (
        _kept_cell(number, source) if len(source) <= MAX_KEPT_CELL_CHARS else _cell(number, source)
        for number, source in enumerate(read, 1)
    )
    return [cell for cell in known if cell]


def _cell(number: int, source: str) -> Cell | None:
    text = python_source(source)
    return Cell(number, text, ast.parse(text)) if text else None


_kept_cell = lru_cache(maxsize=512)(_cell)


def python_source(source: str) -> str | None:
    """The Python of a cell, line for line, with IPython's own lines replaced by `pass`; None if it is not Python."""
    if len(source) > MAX_CELL_CHARS:
        return None
    if source.startswith("%%"):
        first, _, rest = source.partition("\n")
        return python_source(f"\n{rest}") if first.split()[0] in TRANSPARENT_MAGICS else ""
    plain = "\n".join(IPYTHON_LINE.sub(r"\1pass", line) for line in source.split("\n"))
    return next((text for text in (source, plain) if _is_python(text)), None)


def compile_cell(text: str, file: str = "<cell>") -> CodeType:
    """The code of a cell, which may `await`. Nothing of it is run."""
    code: CodeType = compile(text, file, "exec", TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def future_imports(tree: ast.Module) -> list[ast.stmt]:
    """The statements at the beginning of a cell that change how the others are compiled."""
    return [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]


def compile_statement(statement: ast.stmt, future: Sequence[ast.stmt], file: str = "<cell>") -> CodeType:
    """The code of one statement of a cell with these imports from the future. Nothing of it is run."""
    body = [statement] if statement in future else [*future, statement]
    code: CodeType = compile(ast.Module(body, []), file, "exec", TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _is_python(text: str) -> bool:
    """Whether the text can be compiled, and is not nested so deeply that the rules cannot be judged on it."""
    try:
        compile_cell(text)
        tree = ast.parse(text)
        ast.unparse(tree)
    except PARSE_ERRORS:
        return False
    return _is_flat(tree)


def _is_flat(tree: ast.AST) -> bool:
    """Whether a tree has no more than `MAX_DEPTH` levels: a chain of `elif` is deep, though it does not look it."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def why_not_python(source: str) -> str:
    """Why a cell cannot be read as Python, in one line."""
    if len(source) > MAX_CELL_CHARS:
        return f"this cell has more than {MAX_CELL_CHARS:,} characters"
    try:
        compile_cell(source)
    except SyntaxError as error:
        where = f", in line {error.lineno}: `{(error.text or '').strip()}`" if error.lineno else ""
        return one_line(f"{type(error).__name__}: {error.msg}{where}", MAX_MESSAGE_CHARS)
    except PARSE_ERRORS as error:
        return str(failure_of(error))
    return "this cell is nested too deeply to be read, or the notebook is too long"


def module_level(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, but not inside of functions and classes."""
    yield node
    if not isinstance(node, Definition | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from module_level(child)


def imported_names(node: ast.AST) -> dict[str, str]:
    """The names that an import gives a meaning to, and what it is: {"F": "torch.nn.functional"}."""
    if isinstance(node, ast.Import):
        named = {alias.asname: alias.name for alias in node.names if alias.asname}
        return named | {top: top for alias in node.names if not alias.asname for top in [alias.name.split(".")[0]]}
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
    return {}


def bound_names(node: ast.AST) -> Iterator[str]:
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


def _single_imports(node: Import) -> Iterator[tuple[str, ast.stmt]]:
    """An import as one statement for each name that it binds."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield alias.asname or alias.name.split(".")[0], ast.Import([alias])
        elif node.module != "__future__":
            yield alias.asname or alias.name, ast.ImportFrom(node.module, [alias], node.level)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to anything but a module."""
    for node in module_level(statement):
        if isinstance(node, Definition):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
