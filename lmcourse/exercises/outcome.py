"""Run one case on one answer; the outcome is plain data.

`run_case` is the only function of the course that runs a learner's code. It never raises: whatever the code does ends
up in an `Outcome`. An outcome holds plain values only, so it can come from this process or from a locked-away one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from lmcourse.exercises.cases import Case
from lmcourse.exercises.failure import Failure, failure_of
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.isolated_state import isolated_state
from lmcourse.exercises.limits import SCRIPT, TimeLimitExceeded, memory_limit, time_limit
from lmcourse.exercises.rules import modes_end, watched
from lmcourse.exercises.values import MAX_VALUE_CHARS, NotPlainError, Plain, Special, copy_input, same, to_plain
from lmcourse.text import one_line

REFERENCE_SECONDS = 60.0
"""The time limit of a reference on one case: it is ours, so only a slow machine could reach it."""


@dataclass(frozen=True)
class Outcome:
    """Result of running one case: value or failure, output, warnings, changed inputs, forbidden uses.

    Attributes:
        value: the result, if there is no failure.
        failure: the exception, if there was one.
        printed: what the code wrote to stdout and stderr.
        warned: the warnings it caused.
        changed: the inputs that it changed in place, by the names that the answer gives them, or by position.
        forbidden: torch operators that it used and the exercise rules out.
    """

    value: Plain = None
    failure: Failure | None = None
    printed: str = ""
    warned: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    forbidden: tuple[Use, ...] = ()

    @property
    def timed_out(self) -> bool:
        """Whether it was stopped because its time was up."""
        return self.failed_with("TimeLimitExceeded")

    def failed_with(self, kind: str) -> bool:
        """Whether it ended with an exception of just this class."""
        return self.failure is not None and self.failure.kind == kind


def run_case(
    answer: Callable[..., Any], case: Case, *, name: str = "", seconds: float = 10.0, forbid: tuple[str, ...] = ()
) -> Outcome:
    """Run `answer` on the inputs of `case`.

    Args:
        answer: a learner's function or class.
        case: the inputs; the answer works on a copy of them.
        name: what a case's script calls the answer; by default the answer's own name.
        seconds: the time limit.
        forbid: the rules of the exercise (see `rules`). Of a class, only its source is read.
    """
    args, kwargs = copy_input(case.args), copy_input(case.kwargs)
    seen: dict[str, Use] = {}
    is_watched = bool(forbid) and isinstance(answer, FunctionType)
    judged = watched(answer, forbid, seen) if is_watched else answer
    value: Plain = None
    failure: Failure | None = None
    # The time limit is the innermost: it may interrupt anywhere inside, and what is around it must still be undone.
    with modes_end() if is_watched else nullcontext(), isolated_state() as captured, memory_limit():
        try:
            with time_limit(seconds):
                value, failure = _run(judged, case, args, kwargs, name or getattr(answer, "__name__", ""))
        except TimeLimitExceeded as error:
            line = failure_of(error)
            failure = Failure(("TimeLimitExceeded",), f"still running after {seconds:g} s", line.line, line.number)
    return Outcome(
        None if failure else value,
        failure,
        captured.output.getvalue(),
        captured.warned,
        _changed(case, answer, args, kwargs),
        tuple(seen.values()),
    )


def _run(
    answer: Callable[..., Any], case: Case, args: list[Plain], kwargs: dict[str, Plain], name: str
) -> tuple[Plain, Failure | None]:
    """Everything that can run a learner's code: the call, copying the result, and printing an exception."""
    try:
        if case.script is not None:
            return _run_script(case.script, answer, name, kwargs), None
        return to_plain(answer(*args, **kwargs)), None
    except (TimeLimitExceeded, KeyboardInterrupt):
        raise
    except NotPlainError as error:
        return None, Failure(("NotPlainError",), f"returned {error}, which is not a number, a string or a tensor")
    except BaseException as error:  # a learner's sys.exit() must end the case, not the kernel
        return None, failure_of(error)


def _run_script(lines: str, answer: Callable[..., Any], name: str, inputs: dict[str, Plain]) -> list[Plain]:
    """Run a script of calls on a class; the values of its expression lines are the result."""
    names: dict[str, Any] = {"print": _silent, **inputs, name: answer}
    results = []
    for code, is_expression in _compiled(lines):
        value = eval(code, names)
        if is_expression:
            # An object cannot leave this process: one of the answer's class is told by what the exercise calls it.
            is_own = isinstance(answer, type) and isinstance(value, answer)
            results.append(Special(f"a {name}") if is_own else _plain_or_type(value))
    return results


def _silent(*_: object, **__: object) -> None:
    """Replace `print` in a script of calls: a report quotes what the answer printed, and a script is no part of it."""


@lru_cache(maxsize=1024)
def _compiled(lines: str) -> tuple[tuple[CodeType, bool], ...]:
    """The statements of a script, each with whether it is an expression."""
    return tuple(
        (compile(ast.Expression(statement.value), SCRIPT, "eval"), True)
        if isinstance(statement, ast.Expr)
        else (compile(ast.Module([statement], []), SCRIPT, "exec"), False)
        for statement in ast.parse(lines).body
    )


def _plain_or_type(value: object) -> Plain:
    """A line's value; of an object, what it is."""
    try:
        return to_plain(value)
    except NotPlainError as error:
        return Special(one_line(str(error), MAX_VALUE_CHARS))


def _changed(case: Case, answer: object, args: list[Plain], kwargs: dict[str, Plain]) -> tuple[str, ...]:
    """The inputs that are no longer what they were."""
    code = answer.__code__ if isinstance(answer, FunctionType) else None
    names = [f"input `{name}`" for name in code.co_varnames[: code.co_argcount]] if code else []
    names += [f"input {position}" for position in range(len(names) + 1, len(args) + 1)]
    old_args, old_kwargs = case.plain_inputs
    inputs = zip(names, old_args, args, strict=False)
    changed = [name for name, old, new in inputs if not same(old, new)]
    changed += [f"input `{name}`" for name, old in old_kwargs.items() if not same(old, kwargs[name])]
    return tuple(changed)
