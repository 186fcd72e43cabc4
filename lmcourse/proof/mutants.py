"""Mutants of an answer: its text with one small change each, as a slip of the hand would make it.

Offutt et al. (1996), "An experimental determination of sufficient mutant operators": changes of operators, comparisons,
constants and conditions find nearly what all others do. Added are the slips of tensor code: a wrong axis, a swapped
argument, a dropped `keepdim`, `dtype` or `clone`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lmcourse.proof.operators import replacements


@dataclass(frozen=True)
class Mutant:
    """An answer with one change.

    Attributes:
        change: the statement before and after: "if x < 0: → if x <= 0:".
        text: the whole answer.
    """

    change: str
    text: str


@dataclass(frozen=True)
class _Place:
    """A node of the tree: where it hangs, and the statement it is in."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    statement: ast.stmt


def mutants(text: str) -> list[Mutant]:
    """Every mutant of an answer, each text once.

    Args:
        text: the cell with the answer. What computes nothing stays as it is: docstrings, annotations, messages of
            exceptions.
    """
    tree = ast.parse(text)
    original = ast.unparse(tree)
    found: dict[str, Mutant] = {}
    for place in _places(tree):
        before = _first_line(place.statement)
        for new in replacements(place.node):
            place.put(ast.copy_location(new, place.statement))
            mutated = ast.unparse(tree)
            after = _first_line(new if place.node is place.statement else place.statement)  # type: ignore[arg-type]
            place.put(place.node)
            if mutated != original:
                found.setdefault(mutated, Mutant(f"{before} → {after}", mutated))
    return list(found.values())


def _first_line(statement: ast.stmt) -> str:
    """A statement as code; of a compound one its head, and what was added at its end."""
    lines = ast.unparse(statement).split("\n")
    ends_early = isinstance(statement, ast.For | ast.While) and isinstance(statement.body[-1], ast.Break)
    return f"{lines[0]} ... break" if ends_early else lines[0]


def _places(tree: ast.Module) -> Iterator[_Place]:
    for number, statement in enumerate(tree.body):
        yield from _below(statement, _put_item(tree.body, number), statement)


def _below(node: ast.AST, put: Callable[[ast.AST], None], statement: ast.stmt) -> Iterator[_Place]:
    """A node and all below it that computes something."""
    if isinstance(node, ast.stmt):
        statement = node
    yield _Place(node, put, statement)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases") or isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        if isinstance(value, ast.AST):
            yield from _below(value, _put_field(node, field), statement)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, ast.AST) and not _is_docstring(item):
                    yield from _below(item, _put_item(value, number), statement)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _put_item(items: list[ast.stmt] | list[ast.AST], number: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        items[number] = node  # type: ignore[call-overload]

    return put


def _put_field(parent: ast.AST, field: str) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        setattr(parent, field, node)

    return put
