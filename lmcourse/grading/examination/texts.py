"""The code cells of a notebook as Python that a grader can read.

What is graded is plain Python, run by `exec`, not by IPython: the grader judges the rules on the text of a cell, so
what runs must be that text and not what an input transformer, an AST transformer or an event made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import CodeType

from lmcourse.exercises.failure import MAX_MESSAGE_CHARS, failure_of
from lmcourse.text import one_line

LONGEST = 200_000
"""Characters of the longest cell that is run."""

LONGEST_NOTEBOOK = 500_000
"""Characters of all cells that are run. The course's own notebooks have 20,000."""

TRANSPARENT = ("%%time", "%%capture")
"""Cell magics that run the cell below them like any other."""

NOT_READ = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a strange text may raise."""

MAGIC = re.compile(r"^(\s*)([%!?].*|\w[\w.]*\?\??\s*)$")
"""A line for IPython, not for Python."""


@dataclass(frozen=True)
class Cell:
    """A code cell that is Python: its number, from 1 on, what is run of it, and the syntax tree of that."""

    place: int
    text: str
    tree: ast.Module


def cells_of(sources: Sequence[str]) -> list[Cell]:
    """The code cells that are Python and not empty, up to `LONGEST_NOTEBOOK`."""
    ends = accumulate(len(source) for source in sources)
    read = [source for source, end in zip(sources, ends, strict=True) if end <= LONGEST_NOTEBOOK]
    texts = ((place, python_of(source)) for place, source in enumerate(read, 1))
    return [Cell(place, text, ast.parse(text)) for place, text in texts if text]


def python_of(source: str) -> str | None:
    """The Python of a cell, line for line, with IPython's own lines replaced by `pass`; None if it is not Python."""
    if len(source) > LONGEST:
        return None
    if source.startswith("%%"):
        first, _, rest = source.partition("\n")
        return python_of(f"\n{rest}") if first.split()[0] in TRANSPARENT else ""
    plain = "\n".join(MAGIC.sub(r"\1pass", line) for line in source.split("\n"))
    return next((text for text in (source, plain) if _is_python(text)), None)


def compiled(text: str, file: str = "<cell>") -> CodeType:
    """The code of a cell, which may `await`. Nothing of it is run."""
    code: CodeType = compile(text, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _is_python(text: str) -> bool:
    """Whether the text can be compiled, and is not nested so deeply that the rules cannot be judged on it."""
    try:
        compiled(text)
        ast.unparse(ast.parse(text))
    except NOT_READ:
        return False
    return True


def no_python(source: str) -> str:
    """What keeps a cell from being read as Python, in one line."""
    if len(source) > LONGEST:
        return f"this cell has more than {LONGEST:,} characters"
    try:
        compiled(source)
    except SyntaxError as error:
        where = f", in line {error.lineno}: `{(error.text or '').strip()}`" if error.lineno else ""
        return one_line(f"{type(error).__name__}: {error.msg}{where}", MAX_MESSAGE_CHARS)
    except NOT_READ as error:
        return str(failure_of(error))
    return "this cell is nested too deeply to be read, or the notebook is too long"
