"""Find the state of an answer in the kernel: whether the last version of its cell ran, and what it calls.

The module looks in IPython's history when a check runs; it does not observe the cells while they run.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from lmcourse.exercises.forbidden_names import global_names

MAGICS = ("%%time", "%%capture")
"""Cell magics that run the rest of the cell in the notebook's namespace."""


def failed_version(name: str, answer: object = None) -> str:
    """Return why the last cell with a name's definition failed before it, such as "SyntaxError in line 3", or "".

    `answer`, the function or class, may come from that cell after all; it is None for a value.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    history = map(str, shell.history_manager.input_hist_raw) if shell else []
    cells = [cell for cell in history if not cell.startswith("%%") or cell.split(maxsplit=1)[0] in MAGICS]
    is_value = not callable(answer)
    start = rf"^{name}\s*(?::[^=\n]+)?=(?!=)" if is_value else rf"^(?:async\s+def|def|class)\s+{name}\b"
    cell = next((cell for cell in reversed(cells) if re.search(start, cell, re.MULTILINE)), "")
    if not cell:
        return ""
    magic, _, rest = cell.partition("\n") if cell.startswith("%%") else ("", "", cell)
    try:
        text = shell.transform_cell(rest)
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
            compile(tree, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        return f"{type(error).__name__} in line {(error.lineno or 1) + bool(magic)}"
    if (cells.count(cell) > 1) if is_value else any(_is_text(code.co_filename, text) for code in _codes_of(answer)):
        return ""
    return _stopped_before(tree, name, text)


def _stopped_before(tree: ast.Module, name: str, text: str) -> str:
    """Return the notebook's last exception if it stopped the cell with this text before the name was defined."""
    error = getattr(sys, "last_value", None)
    frames = traceback.walk_tb(error.__traceback__) if error else ()
    stopped = next((line for frame, line in frames if _is_text(frame.f_code.co_filename, text)), 0)
    ends = [node.end_lineno or 0 for node in tree.body if name in _bound(node)]
    return f"{type(error).__name__} in line {stopped}" if ends and 0 < stopped <= ends[0] else ""


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_text(file: str, text: str) -> bool:
    return "".join(linecache.getlines(file)).rstrip() == text.rstrip()


def globals_used(answer: object) -> dict[str, Any]:
    """Return the global names that the code of a function or class reads, with their values in its notebook."""
    names = next((function.__globals__ for function in _functions_of(answer)), {})
    read = {name for function in _functions_of(answer) for name in global_names(function.__code__)}
    return {name: names[name] for name in read & names.keys()}


def everything_used(answer: object) -> dict[str, Any]:
    """Return the global names that an answer reads, directly or through other functions of the notebook, with their
    values."""
    found: dict[str, Any] = {}
    waiting = [answer]
    for one in waiting:  # grows meanwhile
        if getattr(one, "__module__", None) == getattr(answer, "__module__", ""):
            read = {name: value for name, value in sorted(globals_used(one).items()) if name not in found}
            found |= read
            waiting += read.values()
    return found


def _functions_of(answer: object) -> list[FunctionType]:
    parts = vars(answer).values() if isinstance(answer, type) else [answer]
    plain = (inspect.unwrap(part) for part in parts if callable(part))
    return [part for part in plain if isinstance(part, FunctionType)]


def _codes_of(answer: object) -> Iterator[CodeType]:
    waiting = [function.__code__ for function in _functions_of(answer)]
    while waiting:
        yield (code := waiting.pop())
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
