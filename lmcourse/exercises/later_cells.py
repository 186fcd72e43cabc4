"""Run a later cell with the learner's answers that pass their public check, and with the course's for the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from io import StringIO
from itertools import groupby
from types import FunctionType
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.exercises.checking import report_of
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import is_unwritten
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import find_exercise
from lmcourse.exercises.released import ReleasedExercise

NOT_WRITTEN = "yours is not written yet"
FAILS = "yours does not pass its check yet"
NOT_CHECKED = "the check of yours did not run"
LEFT_OUT = "it is not asked in this copy"

PLURAL = {
    FAILS: "yours do not pass their checks yet",
    NOT_WRITTEN: "yours are not written yet",
    NOT_CHECKED: "the checks of yours did not run",
    LEFT_OUT: "they are not asked in this copy",
}

_left_out: set[str] = set()


def left_out(name: str) -> None:
    """Say that this copy of a notebook does not ask an exercise: the answer above is the course's."""
    _left_out.add(name)


def your(*names: str) -> AbstractContextManager[None]:
    """Run a block with the learner's answers: `with your("rope"):`. The course's replace those that fail their check.

    One line says whose answers run, and why. Answers that these answers call are judged and replaced, too. After the
    block, each name is the learner's again.
    """
    return _replaced(names, sys._getframe(1).f_globals)


@contextmanager
def _replaced(names: Sequence[str], notebook: dict[str, Any]) -> Iterator[None]:
    exercises = list(dict.fromkeys(_with_used(names)))
    released = any(isinstance(one, ReleasedExercise) for one in exercises)  # such a file has no right answers
    own = {one.name: notebook[one.name] for one in exercises if one.name in notebook}
    held = StringIO()
    try:
        reasons = {one.name: _replace(one, notebook) for one in exercises}
        whose = {one.name: "the baseline of" if one.task else "the course's" for one in exercises}
        print(_told(reasons, dict.fromkeys(whose, "your") if released else whose))
        with redirect_stdout(held) if released and any(reasons.values()) else nullcontext():
            yield
    except NotImplementedError:
        if not released:
            raise
        held = StringIO()  # no header without its table
    finally:
        print(held.getvalue(), end="")
        for one in exercises:
            notebook.pop(one.name, None)
        notebook.update(own)


def _with_used(names: Sequence[str]) -> Iterator[Exercise]:
    """Yield the exercises with these names, each after those whose answers it uses."""
    for name in names:
        exercise = find_exercise(name)
        yield from _with_used(exercise.uses)
        yield exercise


def _replace(exercise: Exercise, notebook: dict[str, Any]) -> str:
    """Replace an answer in the notebook if it fails its check; return the reason, or ""."""
    if exercise.name in _left_out:
        return LEFT_OUT
    reason = _judge(exercise, notebook[exercise.name]) if exercise.name in notebook else NOT_WRITTEN
    if reason and not isinstance(exercise, ReleasedExercise):
        notebook[exercise.name] = _named(exercise.course_answer, exercise.name)
    return reason


def _named(answer: Any, name: str) -> Any:
    """Return a copy of a function that has the name of its exercise, because later cells print `__name__`."""
    if not isinstance(answer, FunctionType):
        return answer
    copied = FunctionType(answer.__code__, answer.__globals__, name, answer.__defaults__, answer.__closure__)
    copied.__kwdefaults__ = answer.__kwdefaults__
    return copied


def _judge(exercise: Exercise, answer: Any) -> str:
    if not (exercise.value or callable(answer)):
        return FAILS
    if exercise.task:
        outcome = run_case(answer, exercise.task.inspection, name=exercise.name, seconds=exercise.seconds)
        return NOT_WRITTEN if is_unwritten(outcome.failure) else FAILS if outcome.failure else ""
    try:
        report = report_of(exercise, answer)
    except CourseError:  # the machine is too busy for the course's own answer
        return NOT_CHECKED
    return "" if report.passed else FAILS if report.answered else NOT_WRITTEN


def _told(reasons: dict[str, str], others: dict[str, str]) -> str:
    """Return one line that says whose answers run: "with your `rope`". `others` says what replaces a failing one."""
    order = ["", *PLURAL]
    ranks = {name: (order.index(reason), others[name] if reason else "your") for name, reason in reasons.items()}
    parts = []
    for (rank, whose), group in groupby(sorted(ranks, key=ranks.__getitem__), ranks.__getitem__):
        reason = order[rank]
        *first, last = [f"`{name}`" for name in group]
        listed = f"{', '.join(first)} and {last}" if first else last
        why = f": {PLURAL[reason] if first else reason}" if reason else ""
        parts.append(f"with {whose} {listed}{why}")
    return "; ".join(parts)
