"""The inputs of one run of a case, in the case's memory layout; they are compared with copies afterwards.

In a script, values that its lines create for the answer are inputs, too: `f([1, 2])`, `tokens = [1, 2]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from lmcourse.base.text import one_line
from lmcourse.exercises.cases import Case
from lmcourse.exercises.limits import SCRIPT
from lmcourse.exercises.values import Plain, copy_input, same, to_plain

NOTE = "__made_by_the_script__"
"""The name of the function that a script calls with each value that it creates."""

MAX_LABEL_CHARS = 40


class Inputs:
    """The inputs of an answer: copies of a case's inputs, which it may change, and values that its script creates."""

    def __init__(self, case: Case) -> None:
        self.args: list[Plain] = copy_input(case.args)
        self.kwargs: dict[str, Plain] = copy_input(case.kwargs)
        if case.layout == "scattered":
            self.args, self.kwargs = _scattered(self.args), _scattered(self.kwargs)
        if case.gradients:
            for tensor in self.floats():
                tensor.requires_grad_()
        self._case = case
        self._made: list[tuple[str, Any, Plain]] = []

    def floats(self) -> list[Tensor]:
        """Return the float tensors, in the order of `Case.gradients`."""
        return [leaf for leaf in tensors_in([self.args, self.kwargs]) if leaf.is_floating_point()]

    def made(self, label: str, value: Any) -> Any:
        """Store a copy of plain data that the script created, such as a list or a tensor; return the value.

        A subclass, such as a cache that is a list, is there to be changed, so "work on a copy" would be untrue of it.
        """
        plain = type(value) in (list, tuple, dict, set) or isinstance(value, Tensor)
        if plain and not any(value is one for _, one, _ in self._made):
            try:
                self._made.append((f"`{one_line(label, MAX_LABEL_CHARS)}`", value, to_plain(value)))
            except Exception:  # a value that contains objects is not compared
                return value
        return value

    def changed(self, answer: object) -> tuple[str, ...]:
        """Return the names of inputs that were changed, without those that a script returns as a result anyway."""
        old_args, old_kwargs = self._case.plain_inputs
        found = [
            name
            for name, old, new in zip(_names(answer, len(self.args)), old_args, self.args, strict=False)
            if not same(old, new)
        ]
        found += [f"input `{name}`" for name, old in old_kwargs.items() if not same(old, self.kwargs[name])]
        returned = {f"`{line}`" for line in self._case.expressions}
        found += [label for label, value, old in self._made if label not in returned and not _still(value, old)]
        return tuple(found)

    def within(self, result: object, answer: object) -> tuple[str, ...]:
        """Return the names of inputs that are part of a result or share memory with it."""
        named = [*zip(_names(answer, len(self.args)), self.args, strict=False)]
        named += [(f"input `{name}`", value) for name, value in self.kwargs.items()]
        named += [(label, value) for label, value, _ in self._made]
        own = _memory(result)
        return tuple(name for name, value in named if own and own in {*map(_memory, _walk(value))})


def _names(answer: object, count: int) -> list[str]:
    """Return the names of positional inputs: the answer's parameter names, or their positions."""
    code = answer.__code__ if isinstance(answer, FunctionType) else None
    names = [f"input `{name}`" for name in code.co_varnames[: code.co_argcount]] if code else []
    return names + [f"input {position}" for position in range(len(names) + 1, count + 1)]


def _still(value: object, old: Plain) -> bool:
    try:
        return same(old, to_plain(value))
    except Exception:  # it now contains objects
        return False


def _memory(value: object) -> int:
    """Return an identifier of the memory of a list, dict, set or tensor; 0 for other values."""
    if isinstance(value, Tensor):
        with torch._C.DisableTorchFunction():
            return value.untyped_storage().data_ptr() if value.layout == torch.strided else 0
    return id(value) if isinstance(value, list | dict | set) else 0


def _walk(value: object) -> Iterator[object]:
    """Yield the tensors, lists, dicts and sets in a value."""
    if isinstance(value, list | dict | set | Tensor):
        yield value
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _walk(item)


def tensors_in(value: object) -> Iterator[Tensor]:
    """Return the tensors in a value."""
    return (part for part in _walk(value) if isinstance(part, Tensor))


def _scattered(value: Plain) -> Plain:
    if isinstance(value, Tensor):
        return scatter(value)
    if isinstance(value, list):
        return [_scattered(item) for item in value]
    if isinstance(value, dict):
        return {key: _scattered(item) for key, item in value.items()}
    return value


def scatter(tensor: Tensor) -> Tensor:
    """Return the same numbers as a view of a larger buffer: with an offset, and no axis of stride 1.

    The first axis has the smallest stride, so no two axes can be joined by `view`. The rest of the buffer is filled
    with NaN or a large number. A tensor with one number gets only the offset.
    """
    strides, step = [], 2
    for length in tensor.shape:
        strides.append(step)
        step = step * max(length, 1) + 1
    can_be_nan = tensor.is_floating_point() or tensor.is_complex()
    filling = 0xFF if can_be_nan else 1 if tensor.dtype == torch.bool else 0x7F
    buffer = torch.empty(step + 3, dtype=tensor.dtype, device=tensor.device)
    with torch.no_grad():
        buffer.view(torch.uint8).fill_(filling)
        view = buffer.as_strided(tensor.shape, strides, 3)
        view.copy_(tensor)
    return view.detach().requires_grad_(tensor.requires_grad)


@dataclass(frozen=True)
class Line:
    """A compiled statement of a script: whether its value is a result, and the names that it assigns to inputs.

    If it asks for a part of the answer's result, such as `f(x)["a"]`, `code` is that of `f(x)`, and `part` is ("a",).
    """

    code: CodeType
    is_expression: bool
    of_answer: bool
    makes: tuple[str, ...]
    part: tuple[object, ...] = ()


@lru_cache(maxsize=1024)
def compiled(lines: str, answer: str) -> tuple[Line, ...]:
    """Return the compiled statements of a script; each passes the inputs that it creates to `NOTE`.

    Only top-level statements do so. A value that involves the answer does not count as an input.
    """
    ours = {answer}
    found = []
    for statement in ast.parse(lines).body:
        makes: tuple[str, ...] = ()
        of_answer = _uses(statement, ours)
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.AugAssign):
            if of_answer:
                _Noting(ours).visit(statement)
            else:
                makes = tuple(_stored(statement))
        if of_answer:
            ours |= {*_stored(statement), *filter(None, [getattr(statement, "name", None)])}
        ast.fix_missing_locations(statement)
        part: tuple[object, ...] = ()
        match statement:
            case ast.Expr(ast.Subscript(whole, ast.Constant(key))) if of_answer:
                code, part = compile(ast.Expression(whole), SCRIPT, "eval"), (key,)
            case ast.Expr(value):
                code = compile(ast.Expression(value), SCRIPT, "eval")
            case _:
                code = compile(ast.Module([statement], []), SCRIPT, "exec")
        found.append(Line(code, isinstance(statement, ast.Expr), of_answer, makes, part))
    return tuple(found)


def _uses(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _stored(node: ast.AST) -> list[str]:
    """Return the names that a statement assigns to, except in comprehensions."""
    if isinstance(node, ast.expr) and not isinstance(node, ast.Name | ast.Tuple | ast.List | ast.Starred):
        return []
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    return [name for part in ast.iter_child_nodes(node) for name in _stored(part)]


class _Noting(ast.NodeTransformer):
    """Rewrites expressions so that each value created without the answer is passed to `NOTE` with its text."""

    def __init__(self, ours: set[str]) -> None:
        self._ours = ours

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.JoinedStr):
            return node  # parts of this node run several times, or later
        if isinstance(node, ast.List | ast.Dict | ast.Set | ast.Call) and not _uses(node, self._ours):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                return node
            return ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(ast.unparse(node)), node], [])
        return self.generic_visit(node)
