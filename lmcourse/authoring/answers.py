"""The answers an author printed, and the stubs a student starts with, as live objects."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

from lmcourse.authoring.build import Files
from lmcourse.authoring.regions import student_text
from lmcourse.authoring.source import Source, read_source
from lmcourse.course import Chapter
from lmcourse.exercises.registry import find_exercise


def answers(chapters: Sequence[Chapter], root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The printed solutions and the untouched stubs of these chapters, by exercise name.

    A value comes as a function of nothing, as `check_exercise` takes it.

    Raises:
        OSError: a source cannot be read.
    """
    solutions: dict[str, Any] = {}
    stubs: dict[str, Any] = {}
    for chapter in chapters:
        source = read_source(Files.of(chapter, root).source)
        solutions |= _run(source, lambda text: text)
        stubs |= _run(source, student_text)
    return solutions, stubs


def _run(source: Source, version: Callable[[str], str]) -> dict[str, Any]:
    """Run the imports and the exercise cells of a source, in one version of their text."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found: dict[str, Any] = {}
    for cell in source.cells:
        if cell.kind != "code":
            continue
        if cell.exercise is None:
            exec(imports(cell.text), names)
            continue
        with suppress(NotImplementedError):  # the stub of a value raises where it stands
            exec(_compiled(version(cell.text), f"<{cell.exercise}>"), names)
        found[cell.exercise] = _answer(cell.exercise, names[cell.exercise])
    return found


def _compiled(text: str, name: str) -> CodeType:
    """Code whose source `inspect` can find, as it can in a notebook: the rules of an exercise read it."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec")


def _answer(name: str, item: Any) -> Any:
    return (lambda: item) if find_exercise(name).value else item


def imports(text: str) -> str:
    """The import statements of a cell."""
    kinds = (ast.Import, ast.ImportFrom)
    return "\n".join(ast.unparse(statement) for statement in ast.parse(text).body if isinstance(statement, kinds))
