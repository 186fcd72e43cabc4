"""Explain why an answer is missing, or why a name that it needs is not defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from lmcourse.base.text import one_line
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.cells import Cell, names_given, reaches

SIMILARITY_CUTOFF = 0.75
"""Similarity, from 0 to 1, above which a name counts as a misspelling of another name."""

MAX_LINE_CHARS = 60


def not_defined(name: str) -> Failure:
    """Return the failure of a case if the exercise's name is not defined."""
    return Failure(("NameError",), f"name '{name}' is not defined")


def is_missing(name: str, outcomes: Sequence[Outcome]) -> bool:
    """Return True if all cases failed because the name is not defined."""
    return all(outcome.failure == not_defined(name) for outcome in outcomes)


def why_missing(name: str, cells: Sequence[Cell], troubles: Mapping[int, str], others: Sequence[str]) -> str:
    """Return the likely reason for a missing answer: its cell failed or was not run, or the name differs.

    `troubles` has what went wrong in cells, by cell number, as words that follow "code cell 7"; `others` has the names
    of the other exercises.
    """
    begin = f"`{name}` is not defined"
    for cell in cells:
        if cell.number in troubles and (cell.answer == name or name in cell.given):
            return f"{begin}: code cell {cell.number} {troubles[cell.number]}."
    known = [other for other in names_given(cells) if other not in others and len(other) <= 2 * len(name)]
    if near := get_close_matches(name, known, n=1, cutoff=SIMILARITY_CUTOFF):
        return f"{begin}. This notebook defines `{near[0]}`: give it the name `{name}` again."
    return f"{begin}: the cell with its answer is gone or empty, or gives it another name."


def redefined(name: str, cells: Sequence[Cell]) -> str:
    """If an answer that loses points is defined again in another cell, return a sentence that says where; otherwise
    ""."""
    own = [cell.number for cell in cells if cell.answer == name]
    for cell in reversed(cells):
        if own and cell.number > own[0] and name in cell.given and cell.answer != name:
            line = one_line(cell.text.splitlines()[cell.given[name] - 1].strip(), MAX_LINE_CHARS)
            return (
                f"Code cell {cell.number} defines `{name}` again (`{line}`). Its own cell, code cell {own[0]}, counts."
            )
    return ""


def undefined_helper(name: str, outcomes: Sequence[Outcome], cells: Sequence[Cell], troubles: Mapping[int, str]) -> str:
    """If an answer needs a name that no cell defines, return a sentence about it; otherwise ""."""
    missed = {
        outcome.failure.message for outcome in outcomes if outcome.failure and outcome.failure.kind == "NameError"
    }
    for helper in sorted(reaches(name, cells)) if missed else ():
        if f"name '{helper}' is not defined" not in missed:
            continue
        for cell in cells:
            if cell.number in troubles and helper in cell.given:
                return (
                    f"`{name}` needs `{helper}`, which code cell {cell.number} should define. That cell "
                    f"{troubles[cell.number]}."
                )
        near = get_close_matches(helper, names_given(cells), n=1, cutoff=SIMILARITY_CUTOFF)
        return f"`{name}` needs `{helper}`, which no cell defines" + (f": is it `{near[0]}` now?" if near else ".")
    return ""
