"""The inputs of a case by name, for learners who want to try what fails: `x, w = inputs("rope", "two speeds")`.

The inputs of a script are the names that it uses: its data, and what it imports from the course.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, TypeGuard

from lmcourse.base.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.registry import find_exercise
from lmcourse.exercises.tracked import Inputs
from lmcourse.exercises.values import Plain, in_short

IN_NOTEBOOK = "# in the notebook"
"""A comment after an import in a script: the notebook has the same import, so reports leave it out."""

_opened: set[str] = set()


class CaseInputs(tuple[Any, ...]):
    """The inputs of a case, in the order of the call: `x, w = inputs("rope", "two speeds")`."""

    _exercise: Exercise
    _case: Case

    @property
    def expected(self) -> Plain:
        """The right result; CourseError is raised if there is none to show."""
        exercise = self._exercise
        if not self or exercise.view or exercise.task:
            raise CourseError(f"`{exercise.name}` has no expected value to show here: that is what it asks for.")
        expected = outcomes_of(exercise).expected(self._case)
        return f"{expected.failure.kind} is raised" if expected.failure else expected.value

    def __repr__(self) -> str:
        named = named_inputs(self._exercise, self._case)
        return "\n".join(f"{name} = {in_short(value)}" for name, value in named.items())


def inputs(exercise: str, case: str) -> CaseInputs:
    """Return copies of the inputs of a case: `x, w = inputs("rope", "two speeds")`. `.expected` is the right result.

    Hidden cases have inputs once `check(..., hidden=True)` has run. Raises CourseError if the exercise or the case does
    not exist, or if the exercise asks for a value.
    """
    found = find_exercise(exercise)
    if found.value:
        raise CourseError(f"`{exercise}` asks for a value, so its case has no inputs.")
    named = dict(labels_of(found))
    if case not in named:
        raise CourseError(_unknown(found, case, list(named)))
    given = CaseInputs(named_inputs(found, named[case]).values())
    given._exercise, given._case = found, named[case]
    return given


def open_hidden(exercise: Exercise) -> None:
    """Let `inputs` give the hidden cases of an exercise, because a report has shown them."""
    _opened.add(exercise.name)


def labels_of(exercise: Exercise) -> Iterator[tuple[str, Case]]:
    """Yield the cases that `inputs` gives, each with its name; further cases with one name get a number: "long 2"."""
    seen: dict[str, int] = {}
    for case in (*exercise.public, *(exercise.hidden if exercise.name in _opened else ())):
        seen[case.name] = seen.get(case.name, 0) + 1
        yield case.name if seen[case.name] == 1 else f"{case.name} {seen[case.name]}", case


def _unknown(exercise: Exercise, case: str, names: list[str]) -> str:
    if case in {hidden.name for hidden in exercise.hidden}:
        return f"“{case}” is a hidden case: `check({exercise.name}, hidden=True)` opens it."
    nearest = get_close_matches(case, names, n=3, cutoff=0.4) or names
    return f"`{exercise.name}` has no case “{case}”. Its cases: {', '.join(f'“{name}”' for name in nearest)}."


def named_inputs(exercise: Exercise, case: Case) -> dict[str, Any]:
    """Return copies of a case's inputs by name, in its memory layout; for a script, also what it uses of the course."""
    made = Inputs(case)
    return {**dict(zip(_parameters(exercise, case), made.args, strict=True)), **made.kwargs, **_used_of_course(case)}


def _parameters(exercise: Exercise, case: Case) -> list[str]:
    """Return names for the positional inputs: those of the parameters as far as there are any, if they are free."""
    try:
        parameters = [*inspect.signature(exercise.course_answer).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    taken = {exercise.name, *case.kwargs}
    numbered = [f"input_{number}" for number in range(1, len(case.args) + 1)]
    return [*numbered] if taken & {*names[: len(numbered)]} else [*names, *numbered[len(names) :]][: len(numbered)]


def _used_of_course(case: Case) -> dict[str, Any]:
    """Return what a script imports from the course and uses, by name, except what its notebook imports, too."""
    script = case.script or ""
    tree = ast.parse(script)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imports = [node for node in tree.body if is_of_course(node)]
    return {
        alias.asname or alias.name: getattr(importlib.import_module(str(node.module)), alias.name)
        for node in imports
        if IN_NOTEBOOK not in script.splitlines()[node.lineno - 1]
        for alias in node.names
        if (alias.asname or alias.name) in used
    }


def is_of_course(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    """Return True if a statement imports names from the course."""
    return isinstance(node, ast.ImportFrom) and str(node.module).startswith("lmcourse.")
