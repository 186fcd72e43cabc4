"""Make a class of honest learners with different versions of a notebook: solved, half solved and misunderstood.

A wrong answer is a known misconception, written into the cell as a learner would, or the printed solution with one
slip: a changed comparison or sign, or a number that is off by one.
"""

from __future__ import annotations

import ast
import copy
import inspect
import random
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from lmcourse.course import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_of

KINDS = {"solved": 12, "known mistake": 4, "slip": 2, "untouched": 2}
"""Frequency of each kind of answer: a number of twentieths."""

REMARKS = ("first try", "as in the first hint", "tried by hand for two", "shorter than before", "ask on Monday")
NAMES = ("my_{}", "{}_here", "the_{}", "{}_2")

OTHER: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
"""Operators and names, each with one that people easily confuse with it."""


def hand_in(chapter: Chapter, course: Path, submitted: Path, students: int, seed: int) -> None:
    """Write the submissions of a class.

    Args:
        chapter: the chapter of the notebook.
        course: the folder with `solutions/` and `notebooks/`.
        submitted: the folder for `student/assignment/notebook.ipynb`.
        students: number of students.
        seed: the random seed.
    """
    name = f"{chapter.topic}.ipynb"
    solution = nbformat.read(course / "solutions" / chapter.id / name, as_version=4)
    release = nbformat.read(course / "notebooks" / chapter.id / name, as_version=4)
    answers = {exercise.name: answers_to(exercise, solution) for exercise in exercises_of(chapter)}
    for number in range(1, students + 1):
        student = f"student-{number:03}"
        folder = submitted / student / chapter.id
        folder.mkdir(parents=True)
        nbformat.write(notebook_of(student, release, answers, random.Random(f"{seed}/{student}")), folder / name)


def notebook_of(
    student: str, release: NotebookNode, answers: dict[str, dict[str, list[str]]], chance: random.Random
) -> NotebookNode:
    """Return one learner's notebook: the student copy with answers of all kinds."""
    nb = copy.deepcopy(release)
    for cell in nb.cells:
        possible = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
        if possible is None:
            continue
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        if possible.get(kind):
            cell.source = in_own_words(chance.choice(possible[kind]), chance)
    nb.cells.insert(1, new_markdown_cell(f"Notes of {student}.", id="notes"))
    return nb


def answers_to(exercise: Exercise, solution: NotebookNode) -> dict[str, list[str]]:
    """Return texts for the answer cell of an exercise, by kind; a kind may have no texts."""
    (printed,) = (cell.source for cell in solution.cells if cell["id"] == exercise.name)
    right = "\n".join(line for line in printed.splitlines() if "### " not in line)
    code = [cell.source for cell in solution.cells if cell.cell_type == "code"]
    known = {name for source in code for name in imported(ast.parse(source))}
    mistakes = [written_out(exercise, mistake.answer, known) for mistake in exercise.misconceptions]
    return {"solved": [right], "known mistake": [text for text in mistakes if text], "slip": list(slips(right))}


def written_out(exercise: Exercise, answer: Callable[..., Any], known: set[str]) -> str | None:
    """Return a known wrong answer as the text of a cell; None if it needs names that the notebook lacks.

    The functions of its module that it calls are included.
    """
    if exercise.value:
        return f"{exercise.name} = {answer()!r}"
    around = inspect.getmodule(answer)
    own = parsed(answer)
    if own is None or around is None:
        return None
    helpers: dict[str, ast.FunctionDef] = {}
    todo = [own]
    while todo:
        for name in sorted(names(todo.pop()) & vars(around).keys() - helpers.keys() - known - {own.name}):
            helper = parsed(vars(around)[name])
            if helper is None:
                return None
            helpers[name] = helper
            todo.append(helper)
    own.name = exercise.name
    own.body = [*reversed(helpers.values()), *own.body]
    return ast.unparse(own)


def parsed(function: object) -> ast.FunctionDef | None:
    """Return a function without decorators and annotations, which depend on its module."""
    if not isinstance(function, FunctionType):
        return None
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    plain: ast.FunctionDef = WithoutTypes().visit(tree)
    return plain


class WithoutTypes(ast.NodeTransformer):
    """Removes annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def in_own_words(source: str, chance: random.Random) -> str:
    """Return the same answer with a comment and renamed variables."""
    tree = ast.parse(source)
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        given = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        kept = {node.id for node in stored(function)} - given
        own = {name: chance.choice(NAMES).format(name) for name in sorted(kept)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                node.id = own.get(node.id, node.id)
    return f"# {chance.choice(REMARKS)}\n{ast.unparse(tree)}"


def slips(source: str) -> Iterator[str]:
    """Return the versions of an answer with one slip."""
    tree = ast.parse(source)
    for place in range(sum(1 for _ in ast.walk(tree))):
        slipped = copy.deepcopy(tree)
        there = list(ast.walk(slipped))[place]
        if isinstance(there, ast.Compare) and type(there.ops[0]) in OTHER:
            there.ops[0] = OTHER[type(there.ops[0])]()
        elif isinstance(there, ast.BinOp) and type(there.op) in OTHER:
            there.op = OTHER[type(there.op)]()
        elif isinstance(there, ast.Constant) and type(there.value) is int:
            there.value += 1
        else:
            continue
        yield ast.unparse(slipped)


def names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def stored(tree: ast.AST) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def imported(tree: ast.AST) -> Iterator[str]:
    """Return the names that a cell imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
