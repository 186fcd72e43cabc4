"""Right answers in other styles, as the text of a cell."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

from lmcourse.exercises.exercise import Answer, Exercise, Variant


def variant_text(exercise: Exercise, variant: Variant) -> str:
    """The cell that a learner would have typed: the imports that the answer uses, and the answer under its name."""
    if isinstance(variant.answer, str):
        return f"{exercise.name} = {variant.answer}"
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(variant.answer))).body
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    definition.decorator_list = []
    own_name, definition.name = definition.name, exercise.name
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and node.id == own_name:
            node.id = exercise.name
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    return "\n".join([*_imports(variant.answer, used), "", "", ast.unparse(definition), ""]).lstrip("\n")


def _imports(answer: Answer, used: set[str]) -> list[str]:
    """The imports at the top of the module of an answer, of libraries, for the names that it uses."""
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
