"""In a notebook's process: run a cell, as a whole or, while the rules of an exercise hold, statement by statement."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from traceback import walk_tb
from types import CodeType
from typing import Any

from lmcourse.exercises.forbidden_calls import ForbiddenCallRecorder
from lmcourse.exercises.forbidden_names import Names, matches
from lmcourse.grading.examination.code_cells import Import, compile_cell, compile_statement, future_imports

Statements = Sequence[int]
"""Numbers of statements of a cell, from 0 on."""

Refused = tuple[tuple[int, Names], ...]
"""The numbers of statements that ran into rules, and which rules these were."""

NOTHING_REFUSED: Refused = ()


def run_whole(text: str, file: str, names: dict[str, Any]) -> None:
    """Run the text of a cell. Raises what it raises."""
    _run(compile_cell(text, file), names)


def run_statements(
    text: str,
    file: str,
    names: dict[str, Any],
    statements: Statements,
    rules: Names,
    take_broken: Callable[[], Names],
) -> tuple[Refused, BaseException | None]:
    """Run statements of a cell, each by itself: where one ends with an exception, the next one is run all the same.

    What computes is refused where it computes; calls that are only seen have been made, so whoever reads the result
    runs the cell anew without the statement.

    Args:
        text: of the cell.
        file: what tracebacks call it.
        names: the notebook's namespace.
        statements: which of its statements.
        rules: those in force.
        take_broken: gives the rules that were run into since it was called last.

    Returns:
        The statements that ran into a rule, and the exception that the last one of the others ended with, if any did.
    """
    refused: list[tuple[int, Names]] = []
    failed: BaseException | None = None
    tree = ast.parse(text)
    future = future_imports(tree)
    for number in statements:
        found: set[str] = set()
        for part in _parts(tree.body[number], future):
            error, broken = _run_watched(compile_statement(part, future, file), names, rules)
            found |= broken.union(take_broken())
            failed = error if error and not found else failed
        if found and not isinstance(tree.body[number], Import):  # of one that is refused nothing is left
            refused.append((number, tuple(rule for rule in rules if rule in found)))
    return tuple(refused), failed


def _parts(statement: ast.stmt, future: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A statement; in place of an import of several things, one for each, as only one of them may be refused."""
    if not isinstance(statement, Import) or statement in future:
        return [statement]
    parts: list[ast.stmt] = []
    for alias in statement.names:
        one = copy(statement)
        one.names = [alias]
        parts.append(one)
    return parts


def _run_watched(code: CodeType, names: dict[str, Any], rules: Names) -> tuple[BaseException | None, set[str]]:
    """Run a statement; what it raised, and the rules that calls of it break."""
    error: BaseException | None = None
    with ForbiddenCallRecorder(rules) as recorder:
        try:
            _run(code, names)
        except BaseException as raised:
            error = raised
    return error, {rule for rule in rules for name in recorder.seen if matches(name, (rule,))}


def line_of(error: BaseException, file: str) -> int:
    """The line of a cell, outside of its functions, that an exception came through; 0 if it came through none."""
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return lines[0] if lines else 0


def _run(code: CodeType, names: dict[str, Any]) -> None:
    coroutine = eval(code, names)
    if inspect.iscoroutine(coroutine):
        asyncio.run(coroutine)
