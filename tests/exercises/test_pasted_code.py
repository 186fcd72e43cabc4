"""The code that a report shows for a case can be pasted into the notebook, where it gives the same result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.exercises.case_code import code_of
from lmcourse.exercises.case_inputs import named_inputs
from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import difference
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.outcome import gradients_of
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.registry import exercises_of
from lmcourse.exercises.tracked import tensors_in
from lmcourse.exercises.trial import ALWAYS_WRONG_EXCEPTIONS
from lmcourse.exercises.values import Special, to_plain

REPOSITORY = Path(__file__).resolve().parents[2]


def imports_of(chapter: Chapter) -> dict[str, ast.Import | ast.ImportFrom]:
    """Return the imports of a notebook by the names that they define."""
    source = REPOSITORY / "solutions" / chapter.id / f"{chapter.topic}.py"
    found: dict[str, ast.Import | ast.ImportFrom] = {}
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name): node for alias in node.names}
    return found


def pasted(
    code: str, exercise: Exercise, imports: dict[str, ast.Import | ast.ImportFrom]
) -> tuple[Any, dict[str, Any]]:
    """Run code with the notebook's imports; return the value of its last line, and all names."""
    names: dict[str, Any] = {"print": lambda *_, **__: None, exercise.name: exercise.reference}
    *first, last = ast.parse(code).body
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    needed = [node for name, node in imports.items() if name in used and name != exercise.name]
    exec(compile(ast.Module([*dict.fromkeys(needed), *first], []), "<pasted>", "exec"), names)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "<pasted>", "exec"), names)
        return None, names
    return eval(compile(ast.Expression(last.value), "<pasted>", "eval"), names), names


def wrong_results(
    exercise: Exercise, case: Case, imports: dict[str, ast.Import | ast.ImportFrom], answers: set[str]
) -> Iterator[str]:
    """Yield what differs when the code of a case, or of each expression of its script, is pasted."""
    expected = outcomes_of(exercise).expected(case)
    if expected.failure:
        assert expected.failure.kind not in ALWAYS_WRONG_EXCEPTIONS, expected.failure
        try:
            pasted(code_of(exercise, case), exercise, imports)
            yield f"{expected.failure.kind} is not raised"
        except Exception as error:
            if expected.failure.kind not in [kind.__name__ for kind in type(error).__mro__]:
                yield f"{type(error).__name__}: {error}"
        return
    places = [None] if case.script is None or case.gradients else [*range(len(case.expressions))]
    for place in places:
        right = expected.value if place is None else expected.value[place]
        code = code_of(exercise, case, place)
        if ";" in re.sub(r"""#.*|"[^"]*"|'[^']*'""", "", code) or re.search(
            r"lmcourse\.(?!notebook import inputs)", code
        ):
            yield f"a semicolon or an import of the course in {code}"
        try:
            value, names = pasted(code, exercise, imports)
            if overwritten := {*names} & answers - {exercise.name}:
                yield f"it overwrites {overwritten}"
            if case.gradients and case.script:
                continue
            if case.gradients:
                inputs = tensors_in([names[name] for name in named_inputs(exercise, case) if name in names])
                value = gradients_of(value, [one for one in inputs if one.is_floating_point()])
            given = exercise.compared(case, to_plain(value)) if not isinstance(right, Special) else right
            told = difference(exercise.compared(case, right), given, exercise.tolerance)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        if told:
            yield f"expression {place}: {told}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_pasted_code_gives_the_result_of_the_case(chapter: Chapter) -> None:
    imports = imports_of(chapter)
    exercises = [one for one in exercises_of(chapter) if not (one.value or one.task or one.file)]
    with torch.random.fork_rng():
        wrong = [
            f"{exercise.name}, {case.name}: {told}"
            for exercise in exercises
            for case in exercise.public
            for told in wrong_results(exercise, case, imports, {one.name for one in exercises_of(chapter)})
        ]
    assert not wrong, "\n".join(wrong)
