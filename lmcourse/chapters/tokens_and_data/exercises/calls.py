"""Cases whose inputs contain pairs: a line of code keeps them as tuples, while plain inputs would become lists."""

from __future__ import annotations

from typing import Any

from lmcourse.exercises.cases import Case, script


def call(name: str, answer: str, *inputs: Any) -> Case:
    """A case that calls the answer with these inputs, written out as code."""
    return script(name, f"{answer}({', '.join(map(repr, inputs))})")


def unchanged(name: str, answer: str, before: str, inputs: str) -> Case:
    """A case that calls the answer, and then returns one of the inputs.

    Args:
        before: a line that creates the input under a name, such as "tokens = [1, 2]".
        inputs: the inputs of the call; the first is that name.
    """
    kept = before.split(" = ")[0]
    return script(name, f"{before}\n{answer}({inputs})\n{kept}")
