"""Watch what is imported while rules hold: a module that is loaded then would bring functions that nobody refuses.

An audit hook (PEP 578) hears of each import, of each module's code that is run without one, as when a module is
loaded anew or by hand, and of each file that is opened: the text of a library, read by a notebook, would be its code
under another name. Nothing that a notebook can reach leads from the hook to what enforces the rules.
"""

from __future__ import annotations

import importlib._bootstrap as bootstrap
import os
import sys
from _thread import get_ident
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from lmcourse.exercises.origin import LIBRARY_PREFIXES, in_library

CODE_FILES = (".py", ".pyc", ".pyi")
"""Endings of the files that hold the code of libraries."""

BEGIN, END = "lmcourse.import_begins", "lmcourse.import_ended"

_TEMPLATE = compile('def load(name, import_): return "loader".load(name, import_)', "<import>", "exec")
_LOADING: CodeType = next(part for part in _TEMPLATE.co_consts if isinstance(part, CodeType))


class Loader:
    """Stands as a constant in the code of Python's own function that loads a module: tells before and after."""

    def __init__(self, original: Callable[[str, Any], Any]) -> None:
        self._original, self._tell = original, sys.audit

    def load(self, name: str, import_: Any) -> Any:
        """As Python's own, once nobody objects."""
        self._tell(BEGIN, name)
        try:
            return self._original(name, import_)
        finally:
            self._tell(END)


def watch_imports(
    refuse: Callable[[str], None],
    refuse_code: Callable[[], None],
    refuse_reading: Callable[[], None],
    loaded: Callable[[], None],
) -> Callable[[], None]:
    """Watch from now on, in this process and its forks.

    Args:
        refuse: called with the name of each module before it is loaded; may raise.
        refuse_code: called before the code of a library's module is run that nobody imports; may raise.
        refuse_reading: called before the code of a library is read that nobody imports; may raise.
        loaded: called when a module was loaded, with all that it imports itself.

    Returns:
        What forgets the imports that have begun: a time limit may have struck before the end of one was told.
    """
    depth: dict[int, int] = {}
    frame_of, told_by = sys._getframe, Loader.load.__code__

    def is_importing(frame: Any) -> bool:
        """Whether an import has led to this frame, with no code of a notebook's in between."""
        while frame is not None and frame.f_code is not told_by:
            if not in_library(frame.f_code.co_filename):
                return False
            frame = frame.f_back
        return frame is not None

    def hook(event: str, details: Any) -> None:
        if event in (BEGIN, END):
            if frame_of(1).f_code is told_by:
                told(event, *details)
        elif event == "exec" and not depth.get(get_ident()) and _is_module_of_a_library(details[0]):
            refuse_code()
        elif event == "open" and details and _is_code_of_a_library(details[0]) and not is_importing(frame_of(1)):
            refuse_reading()

    def told(event: str, name: str = "") -> None:
        thread = get_ident()
        if event == BEGIN:
            refuse(name)
            depth[thread] = depth.get(thread, 0) + 1
            return
        depth[thread] = max(depth.get(thread, 0) - 1, 0)
        if not depth[thread]:
            loaded()

    function: FunctionType = vars(bootstrap)["_find_and_load_unlocked"]
    original = FunctionType(function.__code__, function.__globals__, function.__name__)
    constants: list[Any] = [Loader(original) if part == "loader" else part for part in _LOADING.co_consts]
    file = original.__code__.co_filename  # a library's: what is called from there, no learner calls
    function.__code__ = _LOADING.replace(co_consts=tuple(constants), co_filename=file)
    sys.addaudithook(hook)
    return depth.clear


def _is_module_of_a_library(code: object) -> bool:
    return type(code) is CodeType and code.co_name == "<module>" and code.co_filename.startswith(LIBRARY_PREFIXES)


def _is_code_of_a_library(path: object) -> bool:
    """Whether a path, as it is given to `open`, names a file of a library's code. Others' spellings of it are found by
    their real path."""
    name = _exact_text(path)
    if not name.endswith(CODE_FILES):
        return False
    return name.startswith(LIBRARY_PREFIXES) or os.path.realpath(name).startswith(LIBRARY_PREFIXES)


def _exact_text(path: object) -> str:
    """A path as a text, with none of the methods that a class of the learner's may have put in their place."""
    if issubclass(type(path), str):
        return str.__str__(path)
    return bytes.decode(path, "utf-8", "replace") if issubclass(type(path), bytes) else ""  # type: ignore[arg-type]
