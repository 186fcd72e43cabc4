"""Explain why an exercise's own cell does not define its name, and where else the name is defined."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.examination.code_cells import Cell, Definition
from lmcourse.grading.examination.source_rules import NotebookSource
from lmcourse.grading.examination_result import CellRun
from lmcourse.report import Report
from lmcourse.text import one_line

SIMILARITY_CUTOFF = 0.75
"""How alike two names are, of 1, when one is taken for the other misspelt."""

MAX_LINE_CHARS = 60
"""Characters of a line of a cell that are quoted."""

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


def found_elsewhere(name: str, own: int | None, cells: Sequence[Cell]) -> str:
    """Where the answer stands that its own cell lacks, in one line; nothing if it stands nowhere.

    Args:
        name: of the exercise.
        own: the number of its own cell, if that is there.
        cells: of the notebook.
    """
    if not (others := _other_definitions(name, own, cells)):
        return ""
    number, line = others[-1]
    place = f"code cell {own}: copy it there" if own else "which is gone: copy it into that cell of a fresh notebook"
    return f"`{name}` is defined in code cell {number} (`{line}`), but an answer counts only in its own cell, {place}."


def redefined(name: str, own: int | None, cells: Sequence[Cell]) -> str:
    """Where an answer that loses points is defined once more, in one line; nothing if it is not.

    Args:
        name: of the exercise.
        own: the number of its own cell.
        cells: of the notebook.
    """
    if not (others := [other for other in _other_definitions(name, own, cells) if own and other[0] > own]):
        return ""
    number, line = others[-1]
    return f"Code cell {number} defines `{name}` anew (`{line}`), but what counts is its own cell, code cell {own}."


def undefined_helper(
    name: str, outcomes: Sequence[Outcome], source: NotebookSource, cells: Sequence[Cell], runs: Sequence[CellRun]
) -> str:
    """Which name an answer needs that nothing defines, in one line; nothing if its cases did not stumble over one.

    Args:
        name: of the exercise.
        outcomes: of its cases.
        source: of the notebook.
        cells: of the notebook.
        runs: what came of each code cell.
    """
    missed = {outcome.failure.message for outcome in outcomes if outcome.failed_with("NameError") and outcome.failure}
    for helper, user in source.reached(name).items() if missed else ():
        if f"name '{helper}' is not defined" not in missed:
            continue
        uses = f"`{name}` uses `{helper}`" if user == name else f"`{user}`, which `{name}` needs, uses `{helper}`"
        failed = [cell.number for cell in cells if runs[cell.number - 1].failure and helper in _top_names([cell])]
        if failed:
            return f"{uses}, but code cell {failed[0]}, which is to define it, ended with an error."
        if not source.defines(helper):
            near = get_close_matches(helper, _top_names(cells)[:MAX_NAMES], n=1, cutoff=SIMILARITY_CUTOFF)
            return f"{uses}, which no cell defines any more" + (f": is it `{near[0]}` now?" if near else ".")
    return ""


def explain_unanswered(report: Report, reports: Mapping[str, Report], reached: Collection[str]) -> Report:
    """The report on an answer that looks untouched only because it calls another one that is.

    Args:
        report: on it.
        reports: on all exercises.
        reached: the names that the answer leads to.
    """
    untouched = [name for name, other in reports.items() if name in reached and not other.answered]
    if report.answered or not untouched:
        return report
    return replace(
        report, diagnosis=f"`{report.exercise}` uses `{untouched[0]}`, which is not answered.", answered=True
    )


def _other_definitions(name: str, own: int | None, cells: Sequence[Cell]) -> list[tuple[int, str]]:
    """The cells, other than its own, that give a name a meaning outside of functions: numbers and the lines that do."""
    return [
        (cell.number, one_line(cell.text.splitlines()[cell.defined[name] - 1].strip(), MAX_LINE_CHARS))
        for cell in cells
        if cell.number != own and name in cell.defined
    ]


def _top_names(cells: Sequence[Cell]) -> list[str]:
    """The names that statements on the left margin define or assign to."""
    statements = [statement for cell in cells for statement in cell.tree.body]
    names = [statement.name for statement in statements if isinstance(statement, Definition)]
    targets = [target for statement in statements if isinstance(statement, ast.Assign) for target in statement.targets]
    return [*names, *(target.id for target in targets if isinstance(target, ast.Name))]
