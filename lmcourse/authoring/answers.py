"""The printed solutions and the students' stubs of an exercise, as Python objects."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from lmcourse.authoring.problems import read_sources
from lmcourse.authoring.regions import student_text
from lmcourse.authoring.source import Source
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of


def answers(chapters: Sequence[Chapter], root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The printed solutions and the untouched stubs of these chapters, by exercise name.

    A value comes as a function of nothing, as `check_exercise` takes it.

    Raises:
        CourseError: the sources have mistakes.
    """
    solutions: dict[str, Any] = {}
    stubs: dict[str, Any] = {}
    for chapter, source in read_sources(chapters, root).items():
        values = {exercise.name for exercise in exercises_of(chapter) if exercise.value}
        for found, label, version in ((solutions, "solution", str), (stubs, "stub", student_text)):
            items = _run(source, label, version)
            found |= {name: _as_function(item) if name in values else item for name, item in items.items()}
    return solutions, stubs


def _run(source: Source, label: str, version: Callable[[str], str]) -> dict[str, Any]:
    """What the exercise cells of a source define, in one version of their text, with the imports above them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found: dict[str, Any] = {}
    for cell in source.cells:
        if cell.kind != "code":
            continue
        if cell.exercise is None:
            exec(imports(cell.text), names)
            continue
        exec(_compiled(version(cell.text), f"<{label} of {cell.exercise}>"), names)
        found[cell.exercise] = names[cell.exercise]
    return found


def _compiled(text: str, name: str) -> CodeType:
    """Code whose source `inspect` can find, as it can in a notebook: the rules of an exercise read it."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec")


def _as_function(value: Any) -> Callable[[], Any]:
    return lambda: value


def imports(text: str) -> str:
    """The import statements of a cell."""
    kinds = (ast.Import, ast.ImportFrom)
    return "\n".join(ast.unparse(statement) for statement in ast.parse(text).body if isinstance(statement, kinds))
