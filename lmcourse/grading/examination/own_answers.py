"""What each exercise's own cell defined: that is judged, whatever later cells make of its name.

A later cell may give the name another meaning, delete it, or change the function or class behind it. While an answer is
judged, it is again what its cell made it, and the names of the exercises stand for what they stood for when that cell
had run, as they did for the check below it. Every other name is what the whole notebook left: a helper may stand
further down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from lmcourse.grading.examination.code_cells import bound_names, imported_names

MISSING = object()

FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
"""What a function does is in these attributes."""

TIED_TO_CLASS = ("__dict__", "__weakref__")
"""Attributes of a class that cannot be set."""


class OwnAnswers:
    """The answers in the namespace of a notebook.

    Args:
        names: the notebook's namespace.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._answers: dict[str, _Answer] = {}
        self._stand_ins: dict[str, Any] = {}

    def stand_in(self, name: str, answer: object) -> None:
        """Have something stand for the answer to an exercise, whatever its own cell defines."""
        self._names[name] = self._stand_ins[name] = answer

    def before(self, name: str) -> object:
        """What a name stands for before the cell runs that is to define it; for `note`."""
        return self._names.get(name, MISSING)

    def note(self, name: str, before: object, text: str, *, failed: bool) -> None:
        """Keep what an exercise's cell has defined, if it has.

        Args:
            name: of the exercise.
            before: what `before` gave.
            text: of the cell.
            failed: whether the cell ended with an exception. One that did not has defined what it says, even if that
                is the very object that the name stood for already (a small number for example).
        """
        if name in self._stand_ins:
            self._names[name] = self._stand_ins[name]
            return
        after = self._names.get(name, MISSING)
        if after is MISSING or (after is before and (failed or not gives_meaning(ast.parse(text), name))):
            self._answers.pop(name, None)
            return
        known = {other: self._names[other] for other in self._answers if other in self._names}
        self._answers[name] = _Answer(after, known, list(_snapshots(after)))

    def __contains__(self, name: str) -> bool:
        return name in self._answers

    def judged(self, name: str) -> Any:
        """The answer to an exercise, after everything has been put back for it."""
        answer = self._answers[name]
        self._names.update({other: each.value for other, each in self._answers.items()})
        self._names.update(answer.known | self._stand_ins | {name: answer.value})
        for snapshot in answer.snapshots:
            snapshot.restore()
        return answer.value


def gives_meaning(tree: ast.AST, name: str) -> bool:
    """Whether the text of a cell gives a meaning to a name anywhere."""
    return any(name in (*bound_names(node), *imported_names(node)) for node in ast.walk(tree))


@dataclass(frozen=True)
class _Answer:
    """An answer as its cell left it.

    Attributes:
        value: the function, class or value.
        known: what the names of earlier exercises stood for then.
        snapshots: of what the answer is made of.
    """

    value: Any
    known: dict[str, Any]
    snapshots: list[_Snapshot]


class _Snapshot:
    """The parts of a function or class."""

    def __init__(self, owner: FunctionType | type) -> None:
        self._owner = owner
        self._parts = _parts(owner)

    def restore(self) -> None:
        """Put back what was replaced, and take away what was added."""
        now = _parts(self._owner)
        with suppress(Exception):  # a metaclass may refuse
            for name in now.keys() - self._parts.keys():
                delattr(self._owner, name)
            for name, part in self._parts.items():
                if now.get(name, MISSING) is not part:
                    setattr(self._owner, name, part)


def _parts(owner: FunctionType | type) -> dict[str, Any]:
    if isinstance(owner, FunctionType):
        return {name: getattr(owner, name) for name in FUNCTION_PARTS}
    return {name: part for name, part in vars(owner).items() if name not in TIED_TO_CLASS}


def _snapshots(value: Any) -> Iterator[_Snapshot]:
    """Of a function; of a class with its methods and the notebook's own classes that it inherits from."""
    kind = type(value)  # `isinstance` believes what an object says of itself
    if issubclass(kind, FunctionType):
        yield _Snapshot(value)
    elif issubclass(kind, type):
        for each in value.__mro__:
            if each.__module__ == "__main__":
                yield _Snapshot(each)
                yield from (_Snapshot(part) for part in vars(each).values() if isinstance(part, FunctionType))
