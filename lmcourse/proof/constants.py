"""Answers that ignore their inputs: one value for every call, or one exception."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lmcourse.exercises.groups import constants_of
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import Plain, copy_input, format_value

USUAL: tuple[Plain, ...] = (None, True, False, 0)
"""Constants that are submitted even if no case asks for them."""


@dataclass(frozen=True)
class Constant:
    """An answer that ignores its inputs, and how a report calls it: "True", "raises ValueError"."""

    name: str
    answer: Callable[..., Any]


def constant_answers(trials: Sequence[Trial]) -> list[Constant]:
    """Return an answer for each value and each exception that some case asks for, and for the usual ones.

    Args:
        trials: of all cases of an exercise. Where its cases ask for properties of one thing (`Exercise.view`), what is
            right in all of them is the answer and no guess.
    """
    found = [[trial for trial in trials if passes(trial)] for passes in constants_of(trials)]
    view = trials[0].exercise.view
    asked = [right[0].expected for right in found if not (view and len(right) == len(trials))]
    constants = [_always(outcome) for outcome in asked]
    names = {constant.name for constant in constants}
    return [*constants, *(_always(Outcome(value)) for value in USUAL if format_value(value) not in names)]


def _always(outcome: Outcome) -> Constant:
    if outcome.failure:
        return Constant(f"raises {outcome.failure.kind}", _raiser(outcome.failure.kinds))
    value = outcome.value
    return Constant(format_value(value), lambda *_, **__: copy_input(value))


def _raiser(kinds: Sequence[str]) -> Callable[..., Any]:
    """Return an answer that raises an exception whose classes have these names, the most specific first."""
    kind: type[Exception] = Exception
    for name in reversed(kinds):
        kind = Exception if name == "Exception" else type(name, (kind,), {})

    def answer(*_: Any, **__: Any) -> Any:
        raise kind("always")

    return answer
