"""Find right answers that repeat another one: the same results, bit for bit, by the same operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Answer, Exercise
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.rules import WithoutCompiler
from lmcourse.exercises.values import Special

Run = Callable[[Answer, Case], Outcome]


def repeats(exercise: Exercise, answers: Mapping[str, Answer], run: Run, kept: Iterable[str] = ()) -> dict[str, str]:
    """Return, for each answer that repeats an earlier one, the name of that one.

    Two answers differ if in some case their results differ in a bit, a dtype or a container, if they raise exceptions
    of different classes, or, where the exercise has rules for operators, if they use different operators.

    Args:
        kept: the names of answers that are needed, so that others may repeat them, but they repeat none.
    """
    first: dict[tuple[str, ...], str] = {}
    found = {}
    for name in sorted(answers, key=lambda name: name not in kept):
        behaviour = _behaviour(exercise, answers[name], run)
        if first.setdefault(behaviour, name) != name and name not in kept:
            found[name] = first[behaviour]
    return found


def _behaviour(exercise: Exercise, answer: Answer, run: Run) -> tuple[str, ...]:
    operators: set[str] = set()
    found = []
    for case in (*exercise.public, *exercise.hidden):
        raw: list[object] = []
        watched = answer if isinstance(answer, type) else _recorded(answer, raw, operators if exercise.forbid else None)
        outcome = run(watched, case)
        kinds = outcome.failure.kinds if outcome.failure else ()
        found.append(f"{_bits(outcome.value)} {kinds} {outcome.changed} {outcome.shared} {[*map(_types, raw)]}")
    return (*found, *sorted(operators))


def _recorded(answer: Answer, raw: list[object], operators: set[str] | None) -> Answer:
    @wraps(answer)
    def call(*args: Any, **kwargs: Any) -> Any:
        if operators is None:
            raw.append(answer(*args, **kwargs))
        else:
            with _Operators(operators), _Functions(operators):
                raw.append(answer(*args, **kwargs))
        return raw[-1]

    return call


class _Operators(WithoutCompiler):  # type: ignore[no-untyped-call]
    def __init__(self, seen: set[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(func.name())
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, seen: set[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(resolve_name(func) or getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def _types(value: object) -> str:
    """Return the types of a result and of what it contains."""
    items = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return type(value).__name__ + f"[{','.join(dict.fromkeys(map(_types, items)))}]" * bool(items)


def _bits(value: object) -> str:
    """Return a text that differs if two plain values differ in anything."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.tolist()}"
    if isinstance(value, Special):
        return f"{value.kind}{_bits(value.value)}"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key!r}:{_bits(item)}' for key, item in value.items())}}}"
    return f"[{','.join(map(_bits, value))}]" if isinstance(value, list) else repr(value)
