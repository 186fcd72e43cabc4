"""The code cells of a notebook as Python that a grader can read.

What is graded is plain Python, run by `exec`, not by IPython: the grader judges the rules on the text of a cell, so
what runs must be that text and not what an input transformer, an AST transformer or an event made of it.
"""

from __future__ import annotations

import ast
import re

LONGEST = 200_000
"""Characters of the longest cell that is run."""

TRANSPARENT = ("%%time", "%%capture")
"""Cell magics that run the cell below them like any other."""

NOT_READ = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading a strange text may raise."""

MAGIC = re.compile(r"^(\s*)([%!?].*|\w[\w.]*\?\??\s*)$")
"""A line for IPython, not for Python."""


def python_of(source: str) -> str | None:
    """The Python of a cell, line for line, with IPython's own lines replaced by `pass`; None if it is not Python."""
    if len(source) > LONGEST:
        return None
    if source.startswith("%%"):
        first, _, rest = source.partition("\n")
        return python_of(f"\n{rest}") if first.split()[0] in TRANSPARENT else ""
    plain = "\n".join(MAGIC.sub(r"\1pass", line) for line in source.split("\n"))
    return next((text for text in (source, plain) if _is_python(text)), None)


def _is_python(text: str) -> bool:
    """Whether the text can be compiled, and is not nested so deeply that the rules cannot be judged on it."""
    try:
        compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        ast.unparse(ast.parse(text))
    except NOT_READ:
        return False
    return True
