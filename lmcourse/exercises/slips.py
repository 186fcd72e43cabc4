"""Slips: known mistakes that are written as edits of a right answer (see `Exercise.slips`)."""

from __future__ import annotations
import __future__

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from lmcourse.exercises.edits import EITHER, EditError, edited, shown

Node = TypeVar("Node", bound=ast.AST)

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

    The table of a slip that several exercises share is in a file from which the answer's file imports it.
    """
    file = Path(inspect.getfile(base))
    imported = [file.parent / f"{node.module}".split(".")[-1] for node in _nodes(file, ast.ImportFrom)]
    tables = [file, *filter(Path.is_file, (one.with_suffix(".py") for one in imported))]
    texts = ((one, node) for one in tables for node in _nodes(one, ast.Constant))
    places = (f"{one}:{node.lineno}" for one, node in texts if edits in str(node.value).split(EITHER))
    return f"{next(places, file)}: `{exercise}`: {shown(edits)}"


def _nodes(file: Path, kind: type[Node]) -> Iterator[Node]:
    """Yield the nodes of a kind in a file's syntax tree."""
    return (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kind))
