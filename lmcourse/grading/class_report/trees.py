"""Answers as syntax trees in which names, layout, comments and the order of statements do not matter.

Two answers are compared by the parts of their trees that they share (Baxter et al., "Clone Detection Using Abstract
Syntax Trees", 1998). A part is told by its digest; where order means little, parts are sorted by theirs.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

MIN_PART = 4
"""Nodes of the smallest part that can be shared: what is smaller, such as `x + 1`, everybody writes."""

_UNORDERED = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor, ast.And, ast.Or)
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Tree:
    """A part of an answer.

    Attributes:
        digest: the same for parts that are alike.
        size: nodes in it.
        children: its parts.
    """

    digest: str
    size: int
    children: tuple[Tree, ...]

    def parts(self) -> Iterator[Tree]:
        """Itself and all its parts that are large enough to be shared."""
        if self.size >= MIN_PART:
            yield self
            for child in self.children:
                yield from child.parts()


def tree_of(source: str) -> Tree | None:
    """The tree of a cell; None if it is no Python."""
    try:
        module = ast.parse(source)
        return _tree(_Normalizer(module).visit(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def uncommon_size(tree: Tree, common: Collection[str]) -> int:
    """Nodes of a tree that are in none of its parts with these digests."""
    if tree.digest in common:
        return 0
    return tree.size - sum(child.size - uncommon_size(child, common) for child in tree.children)


def shared_size(one: Tree, other: Tree, common: Collection[str]) -> int:
    """Nodes in parts that two trees share, the largest parts first, without those in parts with these digests."""
    available = Counter(part.digest for part in other.parts())

    def shared(tree: Tree) -> int:
        if tree.size < MIN_PART or tree.digest in common:
            return 0
        if available[tree.digest] <= 0:
            return sum(map(shared, tree.children))
        available.subtract(part.digest for part in tree.parts())
        return uncommon_size(tree, common)

    return shared(one)


def _tree(node: ast.AST) -> Tree:
    """The tree of a normalised node: its label is its kind and whatever of it is no node."""
    label, children = [type(node).__name__], []
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and name in ("body", "orelse", "finalbody"):
            children.append(_node(name, sorted(map(_tree, value), key=lambda tree: tree.digest)))
        elif isinstance(value, list):
            children += [_tree(item) for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            children.append(_tree(value))
        elif name not in ("kind", "type_comment"):
            label.append(repr(value))
    if isinstance(getattr(node, "op", None), _UNORDERED):
        children.sort(key=lambda tree: tree.digest)
    return _node(" ".join(label), children)


def _node(label: str, children: Sequence[Tree]) -> Tree:
    text = "\0".join([label, *(child.digest for child in children)])
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
    return Tree(digest, 1 + sum(child.size for child in children), tuple(children))


class _Normalizer(ast.NodeTransformer):
    """Gives the same form to what means the same, or nearly.

    Args:
        module: it tells which names are its own, and what its imports rename.
    """

    def __init__(self, module: ast.Module) -> None:
        self.own: set[str] = set()
        self.imported: dict[str, str] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.own.add(node.id)
            elif isinstance(node, ast.arg):
                self.own.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.own.add(node.name)
            elif isinstance(node, ast.alias):
                self.imported[node.asname or node.name] = node.name.rpartition(".")[2]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Leave out imports, docstrings and other texts that stand alone, decorators, and annotations."""
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list):
                node.body = [one for one in value if not _says_nothing(one)]  # type: ignore[attr-defined]
            elif name in ("decorator_list", "type_params"):
                setattr(node, name, [])
            elif name in ("annotation", "returns", "ctx"):
                setattr(node, name, None)
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = "own" if node.id in self.own else self.imported.get(node.id, node.id)
        return ast.Name(name)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.Name("own")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = "own"
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = "own"
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("text") if isinstance(node.value, str | bytes) else ast.Constant(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("text")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return self.generic_visit(ast.Assign([node.target], node.value)) if node.value else ast.Pass()

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return self.generic_visit(ast.Assign([node.target], ast.BinOp(node.target, node.op, node.value)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 and type(node.ops[0]) in _MIRRORED:
            node = ast.Compare(node.comparators[0], [_MIRRORED[type(node.ops[0])]()], [node.left])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords.sort(key=lambda keyword: keyword.arg or "")
        return self.generic_visit(node)


def _says_nothing(statement: ast.AST) -> bool:
    return isinstance(statement, _IMPORTS) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )
