"""Cases whose inputs hold pairs: a line of code keeps them tuples, where a case's plain inputs would be lists."""

from __future__ import annotations

from typing import Any

from lmcourse.exercises.cases import Case, script


def call(name: str, answer: str, *inputs: Any) -> Case:
    """A case that calls the answer with these inputs, written out."""
    return script(name, f"{answer}({', '.join(map(repr, inputs))})")


def unchanged(name: str, answer: str, before: str, inputs: str) -> Case:
    """A case that calls the answer, and then looks at an input again.

    Args:
        before: makes the input, under a name: "tokens = [1, 2]".
        inputs: of the call, which has that name first.
    """
    kept = before.split(" = ")[0]
    return script(name, f"{before}\n{answer}({inputs})\n{kept}")
