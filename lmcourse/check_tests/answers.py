"""The answer cells of a notebook: printed solutions, students' stubs, and right answers in other styles."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from lmcourse.authoring.problems import read_sources
from lmcourse.authoring.source import Source, student_text
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.edits import edited
from lmcourse.exercises.exercise import Answer, Exercise
from lmcourse.exercises.registry import exercises_of
from lmcourse.exercises.slips import source_of
from lmcourse.grading.cells import course_imports

_numbers = itertools.count(1)


@dataclass(frozen=True)
class AnswerCell:
    """The cell for an exercise's answer, with the names that imports and printed answers in earlier cells define."""

    exercise: Exercise
    solution: str
    stub: str
    names: Mapping[str, Any]

    def run(self, text: str) -> Callable[..., Any]:
        """Run a text in place of this cell, and return the answer that it defines, or raise the text's exception.

        A value is returned as a function without arguments, as `check_exercise` expects it.
        """
        names = {**self.names}
        exec(_compiled(text, f"<{self.exercise.name} {next(_numbers)}>"), names)
        answer = names[self.exercise.name]
        return (lambda: answer) if self.exercise.value else answer


def answer_cells(chapters: Sequence[Chapter], root: Path) -> dict[Chapter, list[AnswerCell]]:
    """Return the answer cells of these chapters, in order; raise CourseError if the sources have mistakes."""
    return {chapter: _cells(chapter, source) for chapter, source in read_sources(chapters, root).items()}


def only(name: str, cells: dict[Chapter, list[AnswerCell]]) -> dict[Chapter, list[AnswerCell]]:
    """Return the cell for the answer to one exercise; raise CourseError if none of these chapters has it."""
    found = {chapter: [cell for cell in of if cell.exercise.name == name] for chapter, of in cells.items()}
    if not any(found.values()):
        raise CourseError(f"There is no exercise called {name!r} in {', '.join(chapter.id for chapter in cells)}.")
    return found


def _cells(chapter: Chapter, source: Source) -> list[AnswerCell]:
    exercises = {exercise.name: exercise for exercise in exercises_of(chapter)}
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for cell in source.cells:
        if cell.kind != "code":
            continue
        if cell.exercise is None:
            exec(course_imports([cell.text]), names)
            continue
        found.append(AnswerCell(exercises[cell.exercise], cell.text, student_text(cell.text), {**names}))
        exec(_compiled(cell.text, f"<solution of {cell.exercise}>"), names)
    return found


def _compiled(text: str, name: str) -> CodeType:
    """Compile code so that `inspect` finds its source, as in a notebook; the rules of an exercise need the source."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec", dont_inherit=True)


def answer_text(exercise: Exercise, answer: Answer | str, edits: str = "") -> str:
    """Return a cell as a learner would type it: the imports that the answer uses, and the answer with its right
    name, after edits; for a value, its expression."""
    if isinstance(answer, str):
        return f"{exercise.name} = {answer}"
    text = source_of(answer)
    [definition] = ast.parse(edited(text, edits) if edits else text).body
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    own_name, definition.name = definition.name, exercise.name
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and node.id == own_name:
            node.id = exercise.name
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    return "\n".join([*_imports(answer, used), "", "", ast.unparse(definition), ""]).lstrip("\n")


def _imports(answer: Answer, used: set[str]) -> list[str]:
    """Return the library imports at the top of an answer's module for the names that the answer uses."""
    tree = ast.parse(Path(inspect.getfile(answer)).read_text(encoding="utf-8"))
    found = []
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        if isinstance(statement, ast.ImportFrom) and str(statement.module).partition(".")[0] in (
            "lmcourse",
            "__future__",
        ):
            continue
        names = [name for name in statement.names if (name.asname or name.name.partition(".")[0]) in used]
        if names:
            statement.names = names
            found.append(ast.unparse(statement))
    return found
