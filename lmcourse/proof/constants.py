"""Answers that ignore their inputs: one value for every call, or one exception."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial, constants_of
from lmcourse.exercises.values import Plain, copy_input, format_value, same

USUAL: tuple[Plain, ...] = (None, True, False, 0)
"""Constants that are submitted even if no case asks for them."""


@dataclass(frozen=True)
class Constant:
    """An answer that ignores its inputs, how a report calls it ("True", "raises ValueError"), and what it gives."""

    name: str
    answer: Callable[..., Any]
    outcome: Outcome


def constant_answers(trials: Sequence[Trial]) -> list[Constant]:
    """Return an answer for each value and each exception that some case asks for, and for the usual ones.

    Args:
        trials: of all cases of an exercise. Where its cases ask for properties of one thing (`Exercise.view`), what is
            right in all of them is the answer and no guess.
    """
    found = [[trial for trial in trials if passes(trial)] for passes in constants_of(trials)]
    view = trials[0].exercise.view
    asked = [right[0].expected for right in found if not (view and len(right) == len(trials))]
    values = [outcome.value for outcome in asked if not outcome.failure]
    for value in (*_in_scripts(trials), *USUAL):
        if not any(same(value, other) for other in values):
            values.append(value)
            asked.append(Outcome(value))
    return [*map(_always, asked)]


def _in_scripts(trials: Sequence[Trial]) -> Iterator[Plain]:
    """Yield what the lines of scripts ask for: a script may call a function several times."""
    for trial in trials:
        if trial.case.script is not None and isinstance(trial.expected.value, list):
            yield from trial.expected.value


def _always(outcome: Outcome) -> Constant:
    if outcome.failure:
        return Constant(f"raises {outcome.failure.kind}", _raiser(outcome.failure.kinds), outcome)
    value = outcome.value
    return Constant(format_value(value), lambda *_, **__: copy_input(value), outcome)


def _raiser(kinds: Sequence[str]) -> Callable[..., Any]:
    """Return an answer that raises an exception whose classes have these names, the most specific first."""
    kind: type[Exception] = Exception
    for name in reversed(kinds):
        kind = Exception if name == "Exception" else type(name, (kind,), {})

    def answer(*_: Any, **__: Any) -> Any:
        raise kind("always")

    return answer
