"""What came of putting one case to one answer, as plain data.

`evaluate` is the only function of the course that runs a learner's code. It never raises: whatever the code does ends
up in an `Outcome`. An outcome holds plain values only, so it can come from this process or from a locked-away one.
"""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import sysconfig
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmcourse.exercises.cases import Case
from lmcourse.exercises.limits import TimeLimitExceeded, memory_limit, time_limit
from lmcourse.exercises.rules import Watch
from lmcourse.exercises.values import NotPlainError, Plain, kind, plain, same

_STANDARD = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
LIBRARIES = tuple(str(Path(path).resolve()) for path in [*_STANDARD, str(Path(__file__).parents[1])])
"""Where code lives that a learner did not write."""


@dataclass(frozen=True)
class Failure:
    """An exception, told from the learner's side.

    Attributes:
        kinds: the names of the exception's classes, most specific first, as `except` would see them.
        message: its text.
        line: the learner's own line it came from, if there is one: "return x / y".
        number: that line's number in its cell.
    """

    kinds: tuple[str, ...]
    message: str
    line: str = ""
    number: int = 0

    @property
    def kind(self) -> str:
        return self.kinds[0]


@dataclass(frozen=True)
class Outcome:
    """What one case gave: a value or a failure, and what happened on the way.

    Attributes:
        value: the result, if there is no failure.
        failure: the exception, if there was one.
        printed: what the code wrote to stdout and stderr.
        warned: the warnings it caused.
        changed: the names or positions of inputs that it changed in place.
        forbidden: calls that the exercise rules out.
    """

    value: Plain = None
    failure: Failure | None = None
    printed: str = ""
    warned: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


def evaluate(answer: Callable[..., Any], case: Case, *, seconds: float = 10.0, forbid: tuple[str, ...] = ()) -> Outcome:
    """Put `case` to `answer` and report what came of it.

    Args:
        answer: a learner's function or class.
        case: the inputs; the answer works on a copy of them.
        seconds: the time limit.
        forbid: dotted names that must not be called on the way (see `rules`).
    """
    args, kwargs = plain(case.args), plain(case.kwargs)
    printed = io.StringIO()
    watch = Watch(forbid)
    value: Plain = None
    failure = None
    with ExitStack() as around:
        warned = around.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        around.enter_context(redirect_stdout(printed))
        around.enter_context(redirect_stderr(printed))
        try:
            with memory_limit(), time_limit(seconds), watch:
                result = answer(*args, **kwargs) if case.script is None else _drive(answer, case.script, kwargs)
            value = plain(result)
        except TimeLimitExceeded:
            failure = Failure(("TimeLimitExceeded",), f"still running after {seconds:g} s: is there an endless loop?")
        except NotPlainError as error:
            failure = Failure(("NotPlainError",), f"returned {error}, which is not a number, a string or a tensor")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a learner's sys.exit() must end the case, not the kernel
            failure = _failure(error, answer)
    return Outcome(
        value,
        failure,
        printed.getvalue(),
        tuple(f"{warning.category.__name__}: {warning.message}" for warning in warned),
        _changed(case, args, kwargs),
        tuple(watch.seen),
    )


def _drive(answer: Callable[..., Any], lines: str, inputs: dict[str, Plain]) -> list[Plain]:
    """Run a script of calls on a class; the values of its expression lines are the result."""
    names: dict[str, Any] = {answer.__name__: answer, **inputs}
    results = []
    for statement in ast.parse(lines).body:
        if isinstance(statement, ast.Expr):
            results.append(_told(eval(compile(ast.Expression(statement.value), "<script>", "eval"), names)))
        else:
            exec(compile(ast.Module([statement], []), "<script>", "exec"), names)
    return results


def _told(value: object) -> Plain:
    """A line's value; of an object, which cannot leave this process, what it is: "a Value"."""
    try:
        return plain(value)
    except NotPlainError as error:
        return str(error)


def _failure(error: BaseException, answer: Callable[..., Any]) -> Failure:
    line, number = _own_line(error.__traceback__)
    kinds = tuple(kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException))
    return Failure(kinds, _message(error) + _shadowed(error, answer), line, number)


def _shadowed(error: BaseException, answer: Callable[..., Any]) -> str:
    """What to do when a cell has given a built-in function's name to something else (`max = 3`)."""
    if not (isinstance(error, TypeError) and "not callable" in _message(error)):
        return ""
    names, code = getattr(answer, "__globals__", {}), getattr(answer, "__code__", None)
    for name in code.co_names if code else ():
        if hasattr(builtins, name) and name in names and not callable(names[name]):
            return f" (`{name}` is {kind(names[name])} in this notebook: `del {name}` gives the function back)"
    return ""


def _message(error: BaseException) -> str:
    try:
        text = str(error).strip().split("\n")[0]
    except Exception:  # an exception class of the learner's own may fail to print itself
        return ""
    out_of_memory = isinstance(error, MemoryError) or "can't allocate memory" in text
    return "it asked for more memory than this check allows" if out_of_memory else text


def _own_line(trace: types.TracebackType | None) -> tuple[str, int]:
    """The deepest line of the traceback that the learner wrote, and its number."""
    for frame, number in reversed(list(traceback.walk_tb(trace))):
        name = frame.f_code.co_filename
        if not name.startswith(LIBRARIES) and name != "<script>":
            return linecache.getline(name, number).strip(), number
    return "", 0


def _changed(case: Case, args: list[Plain], kwargs: dict[str, Plain]) -> tuple[str, ...]:
    ordinals = [f"input {position}" for position in range(1, len(args) + 1)]
    changed = [name for name, old, new in zip(ordinals, plain(case.args), args, strict=True) if not same(old, new)]
    changed += [f"`{name}`" for name, old in plain(case.kwargs).items() if not same(old, kwargs[name])]
    return tuple(changed)
