"""Slips: known mistakes that are written as edits of a right answer (see `Exercise.slips`)."""

from __future__ import annotations
import __future__

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmcourse.exercises.edits import EditError, edited, shown

if TYPE_CHECKING:
    from lmcourse.exercises.exercise import Exercise

LIBRARIES = {"math": math, "np": np, "torch": torch, "F": torch.nn.functional, "nn": torch.nn}
"""Names that a slip may use even if its module does not import them, because a linter would remove such an import."""


@cache
def source_of(answer: Callable[..., Any]) -> str:
    """Return the text of a function or class without its decorators, and without indentation."""
    text = textwrap.dedent(inspect.getsource(answer))
    [definition] = ast.parse(text).body
    return "".join(text.splitlines(keepends=True)[definition.lineno - 1 :])


def slipped(exercise: str, base: Callable[..., Any], edits: str) -> Callable[..., Any]:
    """Return an answer with edits of its text, defined among the names of its module and of what notebooks import.

    Raises EditError if an edit does not fit, with its file, line and exercise.
    """
    names = {**LIBRARIES, **vars(sys.modules[base.__module__])}
    try:
        text = edited(source_of(base), edits)
        code = compile(text, f"<{shown(edits)}>", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        exec(code, names)
    except EditError as error:
        raise EditError(f"{place_of(exercise, base, edits)}: {error}") from error
    except Exception as error:
        reason = f"what it makes is no answer: {type(error).__name__}: {error}"
        raise EditError(f"{place_of(exercise, base, edits)}: {reason}") from error
    slip: Callable[..., Any] = names[base.__name__]
    return slip


def place_of(exercise: str, base: Callable[..., Any], edits: str) -> str:
    """Return where a slip is written, with its exercise and its edits, for an author: "FILE:LINE: `ulp`: x → y".

    The table of a slip that several exercises share may be in another file of the folder.
    """
    file = Path(inspect.getfile(base))
    places = (f"{one}:{line}" for one in (file, *sorted(file.parent.glob("*.py"))) for line in _lines_with(edits, one))
    return f"{next(places, file)}: `{exercise}`: {shown(edits)}"


def _lines_with(text: str, file: Path) -> list[int]:
    """Return the lines of a file in which this string begins."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return [node.lineno for node in nodes if isinstance(node, ast.Constant) and node.value == text]


def unfit_slips(exercise: Exercise) -> list[str]:
    """Return a line for each slip of an exercise that cannot be made, or whose base is not proven right."""
    bases = [variant.answer for variant in exercise.variants]
    found = []
    for wrong in exercise.misconceptions:
        if wrong.base is None:
            continue
        try:
            wrong.answer  # noqa: B018 - made for the first time
            if wrong.base not in bases:
                place = place_of(exercise.name, wrong.base, wrong.edits)
                raise EditError(f"{place}: its base is no variant: put @{exercise.name}.variant above it")
        except EditError as error:
            found.append(str(error))
    return found
