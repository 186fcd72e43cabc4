"""Cases whose inputs contain pairs: a line of code keeps them as tuples, while plain inputs would become lists."""

from __future__ import annotations

from typing import Any

from lmcourse.exercises.cases import Case, script


def call(name: str, answer: str, *inputs: Any) -> Case:
    """A case that calls the answer with these inputs, written out as code."""
    return script(name, f"{answer}({', '.join(map(repr, inputs))})")
