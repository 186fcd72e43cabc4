"""A cell that calls an answer runs with the learner's or with the course's: a wrong one never flows on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import EACH, solution, source

HANDED_IN = {"commitment"}
"""Answers that are handed in, and so are not replaced."""

Uses = dict[str, set[str]]


def read_by(node: ast.AST, known: Uses) -> set[str]:
    """The exercises whose answers the names in a tree call, directly or through functions of the notebook."""
    names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return set().union(*(known[name] for name in names if name in known))


def unguarded(statement: ast.stmt, known: Uses, guarded: set[str]) -> Iterator[str]:
    """Yield the answers that a statement calls outside a `with your(...)` that names them; functions join `known`."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        known[statement.name] = known.get(statement.name, set()) | read_by(statement, known)
        return
    inner = [one for field in ("body", "orelse", "handlers", "finalbody") for one in getattr(statement, field, [])]
    named = {
        argument.value
        for item in getattr(statement, "items", [])
        if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) == "your"
        for argument in item.context_expr.args
        if isinstance(argument, ast.Constant)
    }
    for one in inner:
        yield from unguarded(one, known, guarded | set().union(*(known[name] for name in named)))
    within = {id(node) for one in inner for node in ast.walk(one)}
    outside = [node for node in ast.walk(statement) if id(node) not in within and isinstance(node, ast.Name)]
    yield from set().union(*(read_by(node, known) for node in outside)) - guarded


@EACH
def test_later_cells_call_answers_only_by_your(chapter: Chapter) -> None:
    known: Uses = {}
    for exercise in exercises_of(chapter):
        known[exercise.name] = {exercise.name}.union(*(known[name] for name in exercise.uses))
    cells = [cell for cell in source(chapter).cells if cell.kind == "code" and not (cell.exercise or cell.check)]
    calls = [name for cell in cells for one in ast.parse(cell.text).body for name in unguarded(one, known, HANDED_IN)]
    assert calls == []


@EACH
def test_grading_skips_cells_that_call_answers(chapter: Chapter) -> None:
    cells = [cell for cell in solution(chapter).cells if cell.cell_type == "code" and "with your(" in cell.source]
    assert all(cell.metadata.get("lmcourse", {}).get("grading") == "skip" for cell in cells)


@EACH
def test_folded_cells_call_no_answers(chapter: Chapter) -> None:
    """An answer that passes its public check and is wrong elsewhere would end there in a bare AssertionError."""
    folded = [cell.source for cell in solution(chapter).cells if "hide-input" in cell.metadata.get("tags", [])]
    assert not any("your(" in text for text in folded)
