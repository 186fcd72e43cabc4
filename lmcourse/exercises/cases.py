"""A test case as plain data: the inputs of a call, or a script of calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from torch import Tensor

from lmcourse.exercises.values import Plain, to_plain


@dataclass(frozen=True, eq=False)  # a case is itself: its inputs hold tensors, which have no one truth value for ==
class Case:
    """A test case: a name for readers, and one call or a short script of calls.

    Attributes:
        kwargs: the named inputs; for a script, the names that it may use.
        script: for an answer that is a class: lines of Python, which use the class under its own name. The result is
            the list of the values of all lines that are expressions.
        edge: whether the input is unusual. Known mistakes are recognised only by the other cases.
        of: for a derived case, the name of the case that it is derived from (see `derived`).
        layout: "scattered" lays out each tensor among the inputs with gaps between its numbers.
        gradients: names of float tensors among the inputs. If there are any, the result consists of their gradients
            from autograd.
        by: for an open task, the dotted names of the course's functions that are called with the answer, one after the
            other, such as "lmcourse.chapters.topic.task:measure"; the last one also gets the inputs, and its result
            counts.
    """

    name: str
    args: tuple[Plain, ...] = ()
    kwargs: Mapping[str, Plain] = field(default_factory=dict)
    script: str | None = None
    edge: bool = False
    of: str = ""
    layout: str = ""
    gradients: tuple[str, ...] = ()
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.expressions  # noqa: B018 - raises an error if the script is not Python, so that its author sees it

    @property
    def inputs(self) -> tuple[Plain, ...]:
        """The inputs, without their names."""
        return (*self.args, *self.kwargs.values())

    @cached_property
    def plain_inputs(self) -> tuple[list[Plain], dict[str, Plain]]:
        """The inputs as plain data. Answers never get these objects, so comparing with them shows changed inputs."""
        return to_plain(self.args), to_plain(self.kwargs)

    @cached_property
    def special(self) -> bool:
        """True if the case is marked as an edge case, or an input is empty, infinite or NaN."""
        return self.edge or any(map(_is_empty_or_not_finite, self.inputs))

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """The lines of a script whose values form the result."""
        lines = ast.parse(self.script or "").body
        return tuple(ast.unparse(statement) for statement in lines if isinstance(statement, ast.Expr))


def _is_empty_or_not_finite(value: Plain, inside: bool = False) -> bool:
    if isinstance(value, Tensor):
        return (not inside and value.numel() == 0) or not bool(value.isfinite().all())
    if isinstance(value, list | tuple | dict | str) and not value:
        return not inside
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return any(_is_empty_or_not_finite(item, inside=True) for item in items)
    return isinstance(value, float) and not math.isfinite(value)


def case(name: str, /, *args: Plain, **kwargs: Plain) -> Case:
    """Make a case that calls the answer with these inputs: `case("one half", 0x3800, 5, 10)`."""
    return Case(name, args, kwargs)


def script(name: str, lines: str, /, **inputs: Plain) -> Case:
    """Make a case that tests a class: `script("adds", "a = Value(2.0)\\nb = a + a\\nb.data")`."""
    return Case(name, (), inputs, lines)


def edge(case: Case) -> Case:
    """Mark a case as an edge case: `edge(case("one token", torch.tensor([3])))`.

    A known mistake is recognised even if an answer differs from it in edge cases. Without this mark, a case is also an
    edge case if the reference raises an exception, or if an input is empty, infinite or NaN.
    """
    return replace(case, edge=True)
