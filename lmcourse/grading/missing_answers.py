"""Explain why an answer is missing, or why a name that it needs is not defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from lmcourse.base.text import one_line
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.cells import Cell, defined_names, reaches

SIMILARITY_CUTOFF = 0.75  # similarity, from 0 to 1, above which a name counts as a misspelling of another name
MAX_LINE_CHARS = 60


def not_defined(name: str) -> Failure:
    """Return the failure of a case if the exercise's name is not defined."""
    return Failure(("NameError",), f"name '{name}' is not defined")


def is_missing(name: str, outcomes: Sequence[Outcome]) -> bool:
    """Return True if all cases failed because the name is not defined."""
    return all(outcome.failure == not_defined(name) for outcome in outcomes)


def why_missing(name: str, cells: Sequence[Cell], troubles: Mapping[int, str], others: Sequence[str]) -> str:
    """Return the likely reason for a missing answer: its cell failed or was not run, or the name differs.

    `troubles` has words that follow "code cell 7" by cell number; `others` has the names of the other exercises.
    """
    begin = f"`{name}` is not defined"
    for cell in cells:
        if cell.number in troubles and (cell.answer == name or name in cell.defined):
            return f"{begin}: code cell {cell.number} {troubles[cell.number]}."
    candidates = [other for other in defined_names(cells) if other not in others and len(other) <= 2 * len(name)]
    if near := get_close_matches(name, candidates, n=1, cutoff=SIMILARITY_CUTOFF):
        return f"{begin}. This notebook defines `{near[0]}`: give it the name `{name}` again."
    return f"{begin}: the cell with its answer is gone or empty, or gives it another name."


def redefined(name: str, cells: Sequence[Cell]) -> str:
    """Return a sentence that says where a later cell defines an answer again, or ""."""
    own = [cell.number for cell in cells if cell.answer == name]
    for cell in reversed(cells):
        if own and cell.number > own[0] and name in cell.defined and cell.answer != name:
            line = one_line(cell.text.splitlines()[cell.defined[name] - 1].strip(), MAX_LINE_CHARS)
            counts = f"Its own cell, code cell {own[0]}, counts."
            return f"Code cell {cell.number} defines `{name}` again (`{line}`). {counts}"
    return ""


def undefined_helper(name: str, outcomes: Sequence[Outcome], cells: Sequence[Cell], troubles: Mapping[int, str]) -> str:
    """Return a sentence about a name that an answer needs and no cell defines, or ""."""
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    missed = {failure.message for failure in failures if failure.kind == "NameError"}
    for helper in sorted(reaches(name, cells)) if missed else ():
        if f"name '{helper}' is not defined" not in missed:
            continue
        for cell in cells:
            if cell.number in troubles and helper in cell.defined:
                where = f"code cell {cell.number} should define. That cell {troubles[cell.number]}."
                return f"`{name}` needs `{helper}`, which {where}"
        near = get_close_matches(helper, defined_names(cells), n=1, cutoff=SIMILARITY_CUTOFF)
        return f"`{name}` needs `{helper}`, which no cell defines" + (f": is it `{near[0]}` now?" if near else ".")
    return ""
