"""Run an answer on a case; the outcome is plain data.

`run_case` is the only function of the course that runs a learner's code. It never raises an exception: everything that
the code does is recorded in an `Outcome`. An outcome contains only plain values, so it can come from this process or
from a sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pkgutil import resolve_name
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from lmcourse.base.text import one_line
from lmcourse.exercises.cases import Case
from lmcourse.exercises.failure import NOT_PLAIN, Failure, failure_of
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.isolated_state import isolated_state, warning_line
from lmcourse.exercises.limits import TimeLimitExceeded, memory_limit, time_limit
from lmcourse.exercises.rules import modes_end, watched
from lmcourse.exercises.tracked import NOTE, Inputs, compiled, tensors_in
from lmcourse.exercises.values import (
    MAX_VALUE_CHARS,
    NotPlainError,
    Plain,
    Special,
    format_value,
    received_phrase,
    to_plain,
)

REFERENCE_SECONDS = 60.0
"""The time limit in seconds of a reference on one case, which only a very slow machine would reach."""


@dataclass(frozen=True)
class Outcome:
    """The result of running one case: value or failure, output, warnings, changed inputs, forbidden uses.

    Attributes:
        changed: the inputs that it changed in place, by the names of the answer's parameters or by position. In a
            script, values made by its lines also count as inputs.
        shared: the inputs that are the result, contain it, or share memory with it.
    """

    value: Plain = None
    failure: Failure | None = None
    printed: str = ""
    warned: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    forbidden: tuple[Use, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        """True if the case was stopped because it ran out of time."""
        return self.failed_with("TimeLimitExceeded")

    def failed_with(self, kind: str) -> bool:
        """Return True if the case ended with an exception of exactly this class."""
        return self.failure is not None and self.failure.kind == kind


def run_case(
    answer: Callable[..., Any], case: Case, *, name: str = "", seconds: float = 10.0, forbid: tuple[str, ...] = ()
) -> Outcome:
    """Run `answer` on a copy of the inputs of `case`.

    Args:
        name: the answer's name in the script of a case; by default its own name.
        forbid: the rules of the exercise (see `rules`). For a class, only its source is checked.
    """
    inputs = Inputs(case)
    shared: tuple[str, ...] = ()
    seen: dict[str, Use] = {}
    is_watched = bool(forbid) and isinstance(answer, FunctionType)
    judged = watched(answer, forbid, seen) if is_watched else answer
    value: Plain = None
    failure: Failure | None = None
    # The time limit must be innermost: it may interrupt anywhere inside, and the contexts around it must still be
    # undone.
    modes, state = modes_end() if is_watched else nullcontext(), isolated_state(compiled=bool(case.by))
    with modes, state as (output, warned), memory_limit():
        try:
            with time_limit(seconds):
                if case.by:
                    value, failure = _measure(judged, answer, case, inputs)
                else:
                    value, shared, failure = _run(judged, case, inputs, name or getattr(answer, "__name__", ""))
        except TimeLimitExceeded as error:
            line = failure_of(error)
            failure = Failure(("TimeLimitExceeded",), f"still running after {seconds:g} s", line.line, line.number)
    return Outcome(
        None if failure else value,
        failure,
        output.getvalue(),
        tuple(map(warning_line, warned)),
        inputs.changed(answer),
        tuple(seen.values()),
        shared,
    )


def _run(
    answer: Callable[..., Any], case: Case, inputs: Inputs, name: str
) -> tuple[Plain, tuple[str, ...], Failure | None]:
    """Do everything that may run a learner's code: call the answer, copy the result, and format an exception."""
    result = None
    try:
        if case.script is not None:
            return *_run_script(case, answer, name, inputs), None
        result = answer(*inputs.args, **inputs.kwargs)
        value = gradients_of(result, inputs.floats()) if case.gradients else to_plain(result)
        return value, inputs.within(result, answer), None
    except (TimeLimitExceeded, KeyboardInterrupt):
        raise
    except NotPlainError as error:
        what = (
            f"an exception, {error}"
            if isinstance(result, BaseException)
            else f"{error}, which is not a number, string or tensor"
        )
        return None, (), Failure((NOT_PLAIN,), f"returned {what}")
    except BaseException as error:  # a learner's sys.exit() must end the case, not the kernel
        return None, (), failure_of(error, answer)


def _measure(
    judged: Callable[..., Any], answer: Callable[..., Any], case: Case, inputs: Inputs
) -> tuple[Plain, Failure | None]:
    """Inspect an answer and measure it. Only inspection watches the rules, because watching makes training slow."""
    *first, last = case.by
    try:
        for name in first:
            resolve_name(name)(judged)
        return to_plain(resolve_name(last)(answer, *inputs.args, **inputs.kwargs)), None
    except (TimeLimitExceeded, KeyboardInterrupt):
        raise
    except BaseException as error:
        return None, failure_of(error)


def _run_script(
    case: Case, answer: Callable[..., Any], name: str, inputs: Inputs
) -> tuple[list[Plain], tuple[str, ...]]:
    """Run a script of calls on a class; return the values of its expression lines, and the inputs in them.

    `print` does nothing, because a report quotes only the answer's output.
    """
    names: dict[str, Any] = {"print": lambda *_, **__: None, **inputs.kwargs, name: answer, NOTE: inputs.made}
    values: list[object] = []
    results: list[Plain] = []
    shared: dict[str, None] = {}
    for line in compiled(case.script or "", name):
        value = eval(line.code, names)
        for part in line.part:
            value = _part_of(value, part)
        for made in line.makes:
            inputs.made(made, names[made])
        if line.is_expression:
            values.append(value)
            shared |= dict.fromkeys(inputs.within(value, answer) if line.of_answer else ())
            # Objects cannot leave this process. For an object of the answer's class, the exercise's name for the class
            # is used.
            is_own = isinstance(answer, type) and isinstance(value, answer)
            results.append(Special(f"a {name}") if is_own else _plain_or_type(value))
    return gradients_of(values, inputs.floats()) if case.gradients else results, tuple(shared)


def _part_of(value: Any, part: object) -> object:
    """Return a part of what an answer gives; if there is none, the exception says what it gives."""
    try:
        return value[part]
    except (LookupError, TypeError):
        plain = _plain_or_type(value)
        keys = f" with the keys {format_value([*plain])}" if isinstance(plain, dict) else ""
        raise LookupError(f"your result has no part {part!r}: it is {received_phrase(plain)}{keys}") from None


def _plain_or_type(value: object) -> Plain:
    """Return the value of a line or, for an object, its type."""
    try:
        return to_plain(value)
    except NotPlainError as error:
        return Special(one_line(str(error), MAX_VALUE_CHARS))


def gradients_of(result: object, floats: Sequence[Tensor]) -> list[Plain]:
    """Return the gradient of a weighted sum of the result for each float input; None for inputs without a gradient."""
    total = torch.zeros((), dtype=torch.float64)
    for part in tensors_in(result):
        if part.is_floating_point() and part.requires_grad:
            weights = torch.arange(1, part.numel() + 1, dtype=torch.float64).cos().reshape(part.shape)
            total = total + (torch.where(part.isfinite(), part, 0).double() * weights).sum()
    if not total.requires_grad:
        return [None] * len(floats)
    found = torch.autograd.grad(total, floats, allow_unused=True)
    return [None if gradient is None else to_plain(gradient) for gradient in found]
