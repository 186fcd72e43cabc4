"""Read the code cells of a notebook as Python, in the way IPython does, and find the names in them.

IPython's own transformer turns `%time x = f()`, `files = !ls` and `?` into calls of `get_ipython()`, which exists in
the process of a submission. This module does not run cells.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from IPython.core import inputtransformer2

from lmcourse.base.text import one_line
from lmcourse.exercises.failure import MAX_MESSAGE_CHARS
from lmcourse.exercises.forbidden_names import global_names

MAX_CELL_CHARS = 200_000

# Largest number of characters of a line that begins like `,f x` or ends like `x?`: IPython's time for it grows with the
# square
MAX_SHORTHAND_CHARS = 1_000

_SHORTHAND = re.compile(r"^\s*[,;]|\?\s*$")

# Cell magics, without arguments, that run the cell below them like any other cell
TRANSPARENT_MAGICS = ("%%time", "%%capture")

# IPython reads a cell again for each magic line in it: 600 lines of `!ls` take 10 s. 50 lines are enough.
inputtransformer2.TRANSFORM_LOOP_LIMIT = 50

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Cell:
    """A code cell: its number from 1, its Python code or the reason why it has none, and what it answers or tests."""

    number: int
    text: str
    problem: str = ""
    answer: str = ""
    graded: str = ""

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the cell."""
        return ast.parse(self.text)

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The global names that the cell's code looks up, including code inside functions."""
        return frozenset(global_names(compile(self.text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)))

    @cached_property
    def defined(self) -> dict[str, int]:
        """The names that the cell defines outside functions, each with the line of its last definition."""
        return {name: node.lineno for node in _module_level(self.tree) for name in _names_bound(node)}


def read_cell(number: int, source: str, answer: str = "", graded: str = "") -> Cell:
    """Return a code cell of a submission, without running it."""
    text, problem = _python(source)
    return Cell(number, text, problem, answer, graded)


@lru_cache(maxsize=1024)
def _python(source: str) -> tuple[str, str]:
    if len(source) > MAX_CELL_CHARS:
        return "", f"this cell has more than {MAX_CELL_CHARS:,} characters"
    if any(len(line) > MAX_SHORTHAND_CHARS and _SHORTHAND.search(line) for line in source.splitlines()):
        return "", f"a line of IPython's shorthand (`,f x`, `x?`) has more than {MAX_SHORTHAND_CHARS:,} characters"
    first, _, rest = source.lstrip("\n").partition("\n")
    if first.strip() in TRANSPARENT_MAGICS:
        source = f"#\n{rest}"  # keep the line numbers
    try:
        manager: Any = inputtransformer2.TransformerManager
        text: str = manager().transform_cell(source)
        compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        where = f", in line {error.lineno}: `{(error.text or '').strip()}`" if error.lineno else ""
        return "", one_line(f"{type(error).__name__}: {error.msg}{where}", MAX_MESSAGE_CHARS)
    except (ValueError, RuntimeError, MemoryError) as error:
        return "", one_line(f"{type(error).__name__}: {error}", MAX_MESSAGE_CHARS)
    return text, ""


def course_imports(sources: Sequence[str]) -> str:
    """Return the import statements of the course's own cells, which grading runs even if the learner's cell fails."""
    found: dict[str, None] = {}
    for source in sources:
        for node in ast.parse(_python(source)[0]).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found[ast.unparse(node)] = None
    return "\n".join(found)


def cells_to_run(cells: Sequence[Cell], skipped: Collection[str]) -> list[Cell]:
    """Return the cells of a submission that grading runs. `skipped` has the texts of the cells marked to be skipped.

    The build marks the course's own demonstrations, which no printed solution needs, and they are skipped. A marked
    cell still runs if an answer of the learner uses a name, directly or indirectly, that only marked cells define.
    """
    waiting = [cell for cell in cells if cell.text.strip() in skipped and not cell.answer and not cell.graded]
    run = [cell for cell in cells if cell not in waiting]
    defined = {name for cell in run for name in cell.defined}
    needed = _reached([name for cell in run if cell.answer or cell.graded for name in cell.loaded], run)
    while found := [cell for cell in waiting if (needed - defined) & cell.defined.keys()]:
        waiting = [cell for cell in waiting if cell not in found]
        needed |= {name for cell in found for name in cell.loaded}
        defined |= {name for cell in found for name in cell.defined}
    return [cell for cell in cells if cell not in waiting]


def _reached(names: Sequence[str], cells: Sequence[Cell]) -> set[str]:
    """Return these names and, recursively, all names that the cells that define them look up."""
    definitions: dict[str, list[Cell]] = {}
    for cell in cells:
        for name in cell.defined:
            definitions.setdefault(name, []).append(cell)
    reached, waiting, done = set(names), [*names], set[int]()
    while waiting:
        for cell in definitions.get(waiting.pop(), ()):
            if cell.number not in done:
                done.add(cell.number)
                waiting += cell.loaded - reached
                reached |= cell.loaded
    return reached


def reaches(answer: str, cells: Sequence[Cell]) -> frozenset[str]:
    """Return the global names that the answer to an exercise uses, directly or through helpers in the notebook."""
    own = [cell for cell in cells if cell.answer == answer]
    return frozenset(_reached([name for cell in own for name in cell.loaded], cells))


def defined_names(cells: Sequence[Cell]) -> Mapping[str, int]:
    """Return the names that cells define outside functions, each with the number of the last cell that defines it."""
    return {name: cell.number for cell in cells for name in cell.defined}


def _module_level(node: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """Yield the statements and expressions below a node, but not inside functions and classes."""
    waiting = [*ast.iter_child_nodes(node)][::-1]
    while waiting:  # no recursion, because a chain of a thousand `elif` is a thousand levels deep
        child = waiting.pop()
        if isinstance(child, ast.stmt | ast.expr):
            yield child
        if not isinstance(child, Definition | ast.Lambda):
            waiting += [*ast.iter_child_nodes(child)][::-1]


def _names_bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
