"""Slips: known mistakes that are written as edits of a right answer (see `Exercise.slips`)."""

from __future__ import annotations
import __future__

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from typing import Any

from lmcourse.exercises.edits import EditError, edited, shown


@cache
def source_of(answer: Callable[..., Any]) -> str:
    """Return the text of a function or class without its decorators, and without indentation."""
    text = textwrap.dedent(inspect.getsource(answer))
    [definition] = ast.parse(text).body
    return "".join(text.splitlines(keepends=True)[definition.lineno - 1 :])


def slipped(base: Callable[..., Any], edits: str) -> Callable[..., Any]:
    """Return an answer with edits of its text, defined among the names of its module; raise EditError if an edit does
    not fit."""
    names = dict(vars(sys.modules[base.__module__]))
    text = edited(source_of(base), edits)
    try:
        code = compile(text, f"<{shown(edits)}>", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        exec(code, names)
    except Exception as error:
        raise EditError(f"what it makes does not compile: {type(error).__name__}: {error}") from error
    slip: Callable[..., Any] = names[base.__name__]
    return slip
