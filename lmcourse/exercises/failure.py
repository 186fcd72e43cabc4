"""An exception of a learner's code as plain data: type, message, and the learner's own line."""

from __future__ import annotations

import builtins
import linecache
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import unwrap
from types import FrameType, ModuleType, TracebackType

import torch

from lmcourse.base.text import one_line
from lmcourse.exercises.limits import TimeLimitExceeded, in_library
from lmcourse.exercises.values import type_phrase

MAX_MESSAGE_CHARS = 300

NOT_PLAIN = "NotPlainError"
"""Kind of a failure without an exception: the result is an object, not plain data."""

MODULE_ALIASES = ("torch", "math", "np", "F")


@dataclass(frozen=True)
class Failure:
    """An exception of an answer.

    Attributes:
        kinds: the names of the exception's classes that `except` would match, most specific first.
        line: the learner's line that raised it, if there is one, such as "return x / y".
        cause: a sentence on a cause outside the function, if there is one.
        written: for a class that still raises NotImplementedError, its methods that do not.
    """

    kinds: tuple[str, ...]
    message: str
    line: str = ""
    number: int = 0
    cause: str = ""
    written: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name of the exception's class."""
        return self.kinds[0]

    def __str__(self) -> str:
        """Return one line, such as "ValueError: no bits, in line 3: `return x / y`"."""
        if self.kind == NOT_PLAIN:
            return f"it {self.message}"
        message = f": {self.message}" if self.message else ""
        return f"{self.kind}{message}, in line {self.number}: `{self.line}`" if self.line else f"{self.kind}{message}"


def is_unwritten(failure: Failure | None) -> bool:
    """Return True if the answer itself still raises NotImplementedError, not another function that it calls."""
    return failure is not None and failure.kind == "NotImplementedError" and not failure.cause


def failure_of(error: BaseException, answer: object = None) -> Failure:
    """Return the `Failure` for an exception that an answer raised; never raise an exception."""
    message = _message(error)
    frame, line, number = _own_line(error.__traceback__)
    kinds = tuple(kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException))
    if _out_of_memory(error, message):
        kinds, message = ("MemoryError", *kinds), "it asked for more memory than this check allows"
    cause = _shadowed(kinds, message, line, frame) if frame else ""
    written: tuple[str, ...] = ()
    if kinds[0] == "NotImplementedError":
        written = _written_methods(answer)
        cls, _, method = frame.f_code.co_qualname.rpartition(".") if frame else ("", "", "")
        if isinstance(answer, type) and cls == answer.__qualname__:
            message = message or f"`{method}` is not written yet"
        else:
            cause = _calls_unwritten(error.__traceback__)
    return Failure(kinds, message, one_line(line, MAX_MESSAGE_CHARS), number, cause, written)


def _message(error: BaseException) -> str:
    try:
        lines = str(error).strip().splitlines()
    except (TimeLimitExceeded, KeyboardInterrupt):
        raise
    except BaseException:  # printing an exception of the learner's own class may fail
        return ""
    return one_line(lines[0], MAX_MESSAGE_CHARS) if lines else ""


def _out_of_memory(error: BaseException, message: str) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in message


def _own_line(trace: TracebackType | None) -> tuple[FrameType | None, str, int]:
    """Return the deepest line of the traceback that the learner wrote: its frame, its text and its number."""
    return ([(None, "", 0), *_own_lines(trace)])[-1]


def _own_lines(trace: TracebackType | None) -> Iterator[tuple[FrameType, str, int]]:
    for frame, number in traceback.walk_tb(trace):
        name = frame.f_code.co_filename
        # There is no line number if a time limit stopped the code between two lines.
        line = "" if in_library(name) or not number else linecache.getline(name, number).strip()
        if line:
            yield frame, line, number


def _calls_unwritten(trace: TracebackType | None) -> str:
    """Return a sentence on the function that raises NotImplementedError if another function of the learner calls it."""
    own = [frame for frame, _, _ in _own_lines(trace)]
    called = list(dict.fromkeys(one.f_code.co_qualname for one in own if one.f_globals is own[-1].f_globals))
    if len(called) < 2 or called[-1].startswith(f"{called[0]}."):
        return ""
    return f"It calls `{called[-1]}`, which still raises NotImplementedError."


def _written_methods(answer: object) -> tuple[str, ...]:
    """Return the names of the methods of a class that do not raise NotImplementedError themselves."""
    parts = vars(answer) if isinstance(answer, type) else {}
    codes = {name: getattr(unwrap(getattr(part, "fget", part)), "__code__", None) for name, part in parts.items()}
    return tuple(name for name, code in codes.items() if code and "NotImplementedError" not in code.co_names)


def _shadowed(kinds: tuple[str, ...], message: str, line: str, frame: FrameType) -> str:
    """Detect a line that fails because a builtin name was redefined (`max = 3`)."""
    if kinds[0] == "TypeError" and "not callable" in message:
        for name in re.findall(r"\b(\w+)\s*\(", line):
            value = frame.f_locals.get(name, frame.f_globals.get(name, len))
            if callable(getattr(builtins, name, None)) and not callable(value):
                return _shadowing_cause(
                    name, value, name not in frame.f_locals, f"`del {name}` gives Python's function back"
                )
    if kinds[0] == "AttributeError":
        for name in re.findall(r"\b(\w+)\s*\.", line):
            value = frame.f_locals.get(name, frame.f_globals.get(name, torch))
            if name in MODULE_ALIASES and not isinstance(value, ModuleType):
                return _shadowing_cause(name, value, name not in frame.f_locals, "run the cell that imports it again")
    return ""


def _shadowing_cause(name: str, value: object, in_notebook: bool, advice: str) -> str:
    if in_notebook:
        return f"`{name}` is {type_phrase(value)} in this notebook, because a cell assigned to it: {advice}."
    return f"`{name}` is {type_phrase(value)} inside your function: give it another name there."
