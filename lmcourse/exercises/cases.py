"""A test case as plain data: the inputs of a call, or a script of calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from torch import Tensor

from lmcourse.exercises.values import Plain, format_value, to_plain


@dataclass(frozen=True)
class Case:
    """A test case: one call or a short script of calls, and the name a reader sees.

    Attributes:
        name: what the case is about: "a subnormal". Hidden cases of one name form a group: "bad input".
        args: positional inputs.
        kwargs: named inputs; in a script, the names it may use.
        script: for an answer that is a class: lines of Python, run with the class under its own name. The values of
            the lines that are expressions, in order, are the result.
        edge: whether it is no ordinary input: known mistakes are recognised by the other cases.
        of: for a case that was derived from another one, the name of that one (see `derived`).
        layout: "scattered" lays out each tensor among the inputs with gaps between its numbers.
        gradients: names of the float tensors among the inputs. With them, the result is what autograd gives for each.
    """

    name: str
    args: tuple[Plain, ...] = ()
    kwargs: Mapping[str, Plain] = field(default_factory=dict)
    script: str | None = None
    edge: bool = False
    of: str = ""
    layout: str = ""
    gradients: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.expressions()  # a script that is no Python fails here, where its author sees it

    def call(self, answer: str) -> str:
        """Return the case as code: `ulp(1.0, 'bf16')`."""
        if self.script is not None:
            return "; ".join(line.strip() for line in self.script.strip().splitlines())
        inputs = [format_value(value) for value in self.args]
        inputs += [f"{name}={format_value(value)}" for name, value in self.kwargs.items()]
        return f"{answer}({', '.join(inputs)})"

    @cached_property
    def plain_inputs(self) -> tuple[list[Plain], dict[str, Plain]]:
        """Its inputs as plain data, which no answer receives: they show whether an answer changed its inputs."""
        return to_plain(self.args), to_plain(self.kwargs)

    @cached_property
    def special(self) -> bool:
        """True if it is marked as an edge, or an input is empty, infinite or NaN."""
        return self.edge or any(map(_is_empty_or_not_finite, (*self.args, *self.kwargs.values())))

    def expressions(self) -> tuple[str, ...]:
        """The lines of a script whose values are the result."""
        return _expressions(self.script or "")


def _is_empty_or_not_finite(value: Plain) -> bool:
    empty = (
        value.numel() == 0 if isinstance(value, Tensor) else isinstance(value, list | tuple | dict | str) and not value
    )
    return empty or _holds_not_finite(value)


def _holds_not_finite(value: Plain) -> bool:
    if isinstance(value, Tensor):
        return not bool(value.isfinite().all())
    if isinstance(value, list | tuple | dict):
        return any(map(_holds_not_finite, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and not math.isfinite(value)


@lru_cache(maxsize=1024)
def _expressions(lines: str) -> tuple[str, ...]:
    """Return the lines that are expressions. They are cached, because each check asks for them."""
    return tuple(ast.unparse(statement) for statement in ast.parse(lines).body if isinstance(statement, ast.Expr))


def case(name: str, /, *args: Plain, **kwargs: Plain) -> Case:
    """Make a case that calls the answer with these inputs: `case("one half", 0x3800, 5, 10)`."""
    return Case(name, args, kwargs)


def script(name: str, lines: str, /, **inputs: Plain) -> Case:
    """Make a case that tests a class: `script("adds", "a = Value(2.0)\\nb = a + a\\nb.data")`."""
    return Case(name, (), inputs, lines)


def edge(case: Case) -> Case:
    """Mark a case as an edge case: `edge(case("one token", torch.tensor([3])))`.

    A known mistake is recognised although an answer does something else in it. A case is an edge without this mark if
    the reference raises, or if an input is empty, infinite or NaN.
    """
    return replace(case, edge=True)
