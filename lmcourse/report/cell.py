"""The notebook cell that checks an exercise and holds its report."""

from __future__ import annotations

CHECK_PREFIX = "check_"
"""What the nbgrader id of a check cell starts with; the exercise's name follows."""


def check_id(exercise: str) -> str:
    """The id of the cell that checks an exercise, for Jupyter and for nbgrader."""
    return f"{CHECK_PREFIX}{exercise}"
