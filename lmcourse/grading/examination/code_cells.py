"""The code cells of a notebook as Python that a grader can read, and the names that they give a meaning to.

What is graded is plain Python, run by `exec`, not by IPython: the grader judges the rules on the text of a cell, so
what runs must be that text and not what an input transformer, an AST transformer or an event made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import CodeType

from lmcourse.exercises.failure import MAX_MESSAGE_CHARS, failure_of
from lmcourse.text import one_line

MAX_CELL_CHARS = 200_000
"""Characters of the longest cell that is run."""

MAX_NOTEBOOK_CHARS = 500_000
"""Characters of all cells that are run. The course's own notebooks have 20,000."""

TRANSPARENT_MAGICS = ("%%time", "%%capture")
"""Cell magics that run the cell below them like any other."""

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a strange text may raise."""

IPYTHON_LINE = re.compile(r"^(\s*)([%!?].*|\w[\w.]*\?\??\s*)$")
"""A line for IPython, not for Python."""


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Cell:
    """A code cell that is Python: its number, from 1 on, what is run of it, and the syntax tree of that."""

    number: int
    text: str
    tree: ast.Module


def cells_of(sources: Sequence[str]) -> list[Cell]:
    """The code cells that are Python and not empty, up to `MAX_NOTEBOOK_CHARS`."""
    ends = accumulate(len(source) for source in sources)
    read = [source for source, end in zip(sources, ends, strict=True) if end <= MAX_NOTEBOOK_CHARS]
    texts = ((number, python_source(source)) for number, source in enumerate(read, 1))
    return [Cell(number, text, ast.parse(text)) for number, text in texts if text]


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
    code: CodeType = compile(text, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _is_python(text: str) -> bool:
    """Whether the text can be compiled, and is not nested so deeply that the rules cannot be judged on it."""
    try:
        compile_cell(text)
        ast.unparse(ast.parse(text))
    except PARSE_ERRORS:
        return False
    return True


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
