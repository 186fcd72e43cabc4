"""Mutants of an answer: its text with one small change, such as a typing mistake.

Offutt et al. (1996), "An experimental determination of sufficient mutant operators": changes of operators, comparisons,
constants and conditions find nearly as much as all other changes. We add typical mistakes in tensor code: a wrong axis,
a swapped argument, a missing `keepdim`, `dtype`, `clone` or `float`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lmcourse.exercises.edits import EditError, edit_between, edited

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""The replacements of each comparison: with a moved boundary, or negated."""

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
"""Replacements of operators. Powers and left shifts are excluded, because with large numbers they take forever and no
time limit can stop them.
"""

NOT_SYMMETRIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult)

FUNCTIONS = {
    "min": "max",
    "amin": "amax",
    "argmin": "argmax",
    "minimum": "maximum",
    "cummin": "cummax",
    "floor": "ceil",
    "any": "all",
    "isinf": "isnan",
    "isfinite": "isnan",
    "sum": "prod",
    "mean": "sum",
    "sin": "cos",
    "zeros": "ones",
    "zeros_like": "ones_like",
    "triu": "tril",
}
"""Functions and methods, each with its replacements."""

FUNCTIONS |= {new: old for old, new in FUNCTIONS.items() if new not in FUNCTIONS}

SAME_WITHOUT = frozenset(
    {"bool", "complex", "contiguous", "item", "iter", "len", "list", "print", "range", "super", "tolist"}
    | {"enumerate", "tuple", "detach", "zip", "isinstance"}
)
"""Calls that are not removed, because the value would not change or no code would be left."""


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield possible replacements of a node, without changing it."""
    for kind, operator in OPERATORS:
        if isinstance(node, kind):
            yield from operator(node)


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for number, found in enumerate(node.ops):
        for other in COMPARISONS[type(found)]:
            new = copy.deepcopy(node)
            new.ops[number] = other()
            yield new


def _arithmetic(node: ast.BinOp) -> Iterator[ast.AST]:
    if other := ARITHMETIC.get(type(node.op)):
        yield ast.BinOp(node.left, other(), node.right)
    if isinstance(node.op, NOT_SYMMETRIC):
        yield ast.BinOp(node.right, node.op, node.left)


def _in_place(node: ast.AugAssign) -> Iterator[ast.AST]:
    if other := ARITHMETIC.get(type(node.op)):
        yield ast.AugAssign(node.target, other(), node.value)
    yield ast.Pass()


def _sign(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _both(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    for number in range(len(node.values)):
        rest = node.values[:number] + node.values[number + 1 :]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int) or (isinstance(value, float) and abs(value) >= 1):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, float):
        yield ast.Constant(2 * value)
        yield ast.Constant(value / 2 if value else 1.0)


def _branch(node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    for taken in (True, False):
        new = copy.copy(node)
        new.test = ast.Constant(taken)
        yield new


def _loop(node: ast.For) -> Iterator[ast.AST]:
    yield ast.For(node.target, node.iter, [*node.body, ast.Break()], node.orelse)
    for first, last in ((1, None), (None, -1)):
        yield ast.For(node.target, _part(node.iter, first, last), node.body, node.orelse)


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for first, last in ((1, None), (None, -1)):
        yield ast.comprehension(node.target, _part(node.iter, first, last), node.ifs, node.is_async)
    for number in range(len(node.ifs)):
        yield ast.comprehension(node.target, node.iter, node.ifs[:number] + node.ifs[number + 1 :], node.is_async)


def _part(items: ast.expr, first: int | None, last: int | None) -> ast.expr:
    bounds = [None if bound is None else ast.Constant(bound) for bound in (first, last)]
    every = ast.Call(ast.Name("list", ast.Load()), [items], [])
    return ast.Subscript(every, ast.Slice(*bounds), ast.Load())


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            new = copy.copy(node)
            setattr(new, part, None)
            yield new


def _call(node: ast.Call) -> Iterator[ast.AST]:
    for number in range(len(node.args) - 1):
        swapped = [*node.args]
        swapped[number], swapped[number + 1] = swapped[number + 1], swapped[number]
        yield ast.Call(node.func, swapped, node.keywords)
    for keyword in node.keywords:
        yield ast.Call(node.func, node.args, [other for other in node.keywords if other is not keyword])
    yield from _other_function(node)
    yield from _without_call(node)


def _other_function(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        yield ast.Call(ast.Name(FUNCTIONS[node.func.id], ast.Load()), node.args, node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS:
        func = ast.Attribute(node.func.value, FUNCTIONS[node.func.attr], ast.Load())
        yield ast.Call(func, node.args, node.keywords)


def _without_call(node: ast.Call) -> Iterator[ast.AST]:
    """Remove a call or its arguments: `abs(x)` → `x`, `x.clone()` → `x`, `x.float()` → `x`, `x.sum(-1)` → `x.sum()`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SAME_WITHOUT or any(isinstance(item, ast.Starred) for item in node.args):
        return
    is_method = isinstance(node.func, ast.Attribute) and not _is_module(node.func.value)
    if name == "float" and not is_method:
        return
    if is_method and isinstance(node.func, ast.Attribute) and not node.args:
        yield node.func.value
    elif is_method and len(node.args) == 1:
        yield ast.Call(node.func, [], node.keywords)
        if name == "to" and isinstance(node.func, ast.Attribute):
            yield node.func.value
    elif len(node.args) == 1 and not name[:1].isupper():
        yield node.args[0]


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "math", "F", "np", "itertools", "einops")


def _statement(node: ast.Expr) -> Iterator[ast.AST]:
    if not isinstance(node.value, ast.Constant):
        yield ast.Pass()


OPERATORS: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], Callable[..., Iterator[ast.AST]]], ...] = (
    (ast.Compare, _comparison),
    (ast.BinOp, _arithmetic),
    (ast.AugAssign, _in_place),
    (ast.UnaryOp, _sign),
    (ast.BoolOp, _both),
    (ast.Constant, _constant),
    ((ast.If, ast.IfExp), _branch),
    (ast.For, _loop),
    (ast.comprehension, _comprehension),
    (ast.Slice, _slice),
    (ast.Call, _call),
    (ast.Expr, _statement),
)


@dataclass(frozen=True)
class Mutant:
    """An answer with one change: the whole text, as `ast.unparse` writes it, without and with the change."""

    original: str
    text: str

    @cached_property
    def change(self) -> str:
        """The change as an edit of the original, such as "x < 0 → x <= 0"."""
        return edit_between(self.original, self.text)


_Place = tuple[Any, Any]
"""A list or the fields of a node, and the index or key of a node in it."""


def mutants(text: str) -> list[Mutant]:
    """Return all mutants of an answer. Docstrings, annotations and messages of exceptions are not changed."""
    tree = ast.parse(text)
    original = ast.unparse(tree)
    found: dict[str, None] = {}
    for holder, key in _places(vars(tree), "body"):
        node = holder[key]
        for new in _replacements(node):
            holder[key] = ast.copy_location(new, node)
            found.setdefault(ast.unparse(tree))
            holder[key] = node
    return [Mutant(original, mutated) for mutated in found if mutated != original]


def with_change(text: str, change: str) -> str:
    """Return the text of the mutant of an answer that a change describes; raise EditError if there cannot be one."""
    changed = edited(ast.unparse(ast.parse(text)), change)
    try:
        return ast.unparse(ast.parse(changed))
    except SyntaxError as error:
        raise EditError(f"what it makes is not Python: {error.msg}") from error


def _places(holder: Any, key: Any) -> Iterator[_Place]:
    """Yield the place of a node, or of each node of a list, and all places below that take part in the computation."""
    node = holder[key]
    if isinstance(node, list):
        for number in range(len(node)):
            yield from _places(node, number)
    elif isinstance(node, ast.AST) and not _is_docstring(node):
        yield holder, key
        if not isinstance(node, ast.Raise | ast.JoinedStr):
            for field in node._fields:
                if field not in ("annotation", "returns", "decorator_list", "bases"):
                    yield from _places(vars(node), field)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
