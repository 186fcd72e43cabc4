"""The normal form of an answer: the same for two texts that differ only in names, comments and formatting."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lmcourse.exercises.edits import edited
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.slips import source_of


def known_forms(exercise: Exercise) -> Iterator[tuple[str, int]]:
    """Yield the normal forms of the variants and the known mistakes of an exercise."""
    made = [variant.answer for variant in exercise.variants if not isinstance(variant.answer, str)]
    made += [wrong.answer for wrong in exercise.misconceptions if not (wrong.base or exercise.value)]
    texts = [(source_of(answer), answer.__name__) for answer in made]
    slips = [(wrong.base, wrong.edits) for wrong in exercise.misconceptions if wrong.base]
    texts += [(edited(source_of(base), edits), base.__name__) for base, edits in slips]
    yield from (normal_form(ast.parse(text), name) for text, name in texts)


def normal_form(tree: ast.Module, answer: str) -> tuple[str, int]:
    """Return an answer's program as text without what anyone can change, and the number of nodes of its syntax tree.

    Names of variables, arguments and helpers become numbers; comments, docstrings, annotations, imports and lines
    outside of definitions that only compute something are left out. ("", 0) if nothing is left. `tree` is changed.
    """
    try:
        tree = _Plain().visit(tree)
        tree.body = [node for node in tree.body if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom)]
        names, attributes = {answer: "answer"}, dict[str, str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                attributes.setdefault(node.attr, f"a{len(attributes)}")
            elif name := _bound(node):
                names.setdefault(name, f"n{len(names)}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                node.attr = attributes.get(node.attr, node.attr)
            for part in ("id", "arg", "name"):
                if (name := getattr(node, part, None)) in names and not isinstance(node, ast.keyword):
                    setattr(node, part, names[str(name)])
        return (ast.dump(tree), sum(1 for _ in ast.walk(tree))) if tree.body else ("", 0)
    except RecursionError:  # a tree can be a thousand levels deep
        return "", 0


def _bound(node: ast.AST) -> str | None:
    """Return the name that a node defines, if it defines one."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.keyword | ast.alias):
        return None
    return getattr(node, "name", None) or getattr(node, "arg", None)


class _Plain(ast.NodeTransformer):
    """Removes annotations, docstrings and other lines that are only a constant."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)
