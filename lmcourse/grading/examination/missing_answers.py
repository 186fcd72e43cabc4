"""Explain why a notebook does not define an exercise's name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.examination.code_cells import Cell, Definition
from lmcourse.grading.examination_result import CellRun

SIMILARITY_CUTOFF = 0.75
"""How alike two names are, of 1, when one is taken for the other misspelt."""

MAX_NAMES = 200
"""Names of the notebook that are looked at."""


def not_defined(name: str) -> Failure:
    """The outcome of a case whose exercise's name is not defined."""
    return Failure(("NameError",), f"name '{name}' is not defined")


def is_missing(name: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether every case only found that the name is not defined."""
    return all(outcome.failure == not_defined(name) for outcome in outcomes)


def why_missing(
    name: str, sources: Sequence[str], runs: Sequence[CellRun], cells: Sequence[Cell], others: Collection[str]
) -> str:
    """The likely reason: its cell failed or is no Python, it has another name, or it is gone.

    Args:
        name: of the exercise.
        sources: the code cells as they were handed in.
        runs: what came of each of them.
        cells: those that are Python.
        others: names that are right where they are, those of the other exercises.
    """
    begin = f"name '{name}' is not defined:"
    defines = re.compile(rf"^[ \t]*(?:(?:async +)?def|class) +{name}\b|^{name}[ \t]*(?::[^=\n]*)?=", re.MULTILINE)
    for number, (source, run) in enumerate(zip(sources, runs, strict=True), 1):
        if run.failure and defines.search(source):
            return f"{begin} code cell {number} ended with {run.failure}"
    known = [other for other in _top_names(cells) if other not in others and len(other) <= 2 * len(name)]
    near = get_close_matches(name, known[:MAX_NAMES], n=1, cutoff=SIMILARITY_CUTOFF)
    if near:
        return f"{begin} is it the `{near[0]}` of this notebook? Then give it the name `{name}` again."
    return f"{begin} the cell with its answer is gone or empty, or gives it another name."


def _top_names(cells: Sequence[Cell]) -> list[str]:
    """The names that statements on the left margin define or assign to."""
    statements = [statement for cell in cells for statement in cell.tree.body]
    names = [statement.name for statement in statements if isinstance(statement, Definition)]
    targets = [target for statement in statements if isinstance(statement, ast.Assign) for target in statement.targets]
    return [*names, *(target.id for target in targets if isinstance(target, ast.Name))]
