"""Which rules hold from a notebook's first cell on, and which statements are run under them.

What an exercise rules out is refused while its answer is judged. But a cell may have used it before, to leave a table
for the answer to read from; so may an answer, while it is judged for another exercise that allows it. So an exercise
that rules out more than the course's own package and its like is judged in a process of its own, together with those
that rule out the same: there the rules hold before the first cell is run, and to the end.

Honest notebooks use what is ruled out too, next to their answers: to compare, to draw, to try. A statement that does is
left out, and statements that no answer needs are not run at all.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence

from lmcourse.grading.examination.code_cells import Cell
from lmcourse.grading.examination.running_cells import Refused
from lmcourse.grading.examination.skipped_cells import DYNAMIC_NAMES
from lmcourse.grading.examination.statements import statements_of

Chosen = dict[int, list[int]]
"""The numbers of statements, from 0 on, by the number of their cell."""


def all_statements(cells: Sequence[Cell], failed_lines: Mapping[int, int]) -> Chosen:
    """Every statement, but in cells that ended with an exception those below the line that raised it.

    Args:
        cells: to be run.
        failed_lines: by the number of a cell, in which line it failed.
    """
    return {
        cell.number: [
            number
            for number, statement in enumerate(statements_of(cell))
            if statement.line <= failed_lines.get(cell.number, statement.line)
        ]
        for cell in cells
    }


def needed_statements(
    cells: Sequence[Cell], chosen: Chosen, asked: Collection[str], answers: Collection[str]
) -> Chosen:
    """Those of the statements that some answers may need: what only defines, and what gives or touches a name that one
    of them leads to.

    Args:
        cells: of the notebook.
        chosen: the statements that could be run.
        asked: the exercises that are judged.
        answers: all exercises. A statement that only uses an answer changes nothing about it.
    """
    unchanged = {*dir(builtins), *answers, *(name for cell in cells for name, _ in cell.imported)}
    found = [(cell.number, number, statements_of(cell)[number]) for cell in cells for number in chosen[cell.number]]
    waiting, needed = found, {*asked}
    while new := [one for one in waiting if ((one[2].loaded - unchanged) | one[2].given) & needed]:
        needed = needed.union(*(statement.loaded for _, _, statement in new))
        waiting = [one for one in waiting if one not in new]
    if needed & DYNAMIC_NAMES:
        return chosen
    left_out = {(cell, number) for cell, number, statement in waiting if not statement.only_defines}
    return {cell: [one for one in numbers if (cell, one) not in left_out] for cell, numbers in chosen.items()}


def without(chosen: Chosen, refused: Mapping[int, Refused]) -> Chosen:
    """The statements without those that ran into a rule, by the number of their cell."""
    return {
        cell: [one for one in numbers if one not in dict(refused.get(cell, ()))] for cell, numbers in chosen.items()
    }


def computing(cell: Cell, numbers: Sequence[int]) -> list[int]:
    """Those of these statements of a cell that do more than import, define and name constants."""
    return [one for one in numbers if not statements_of(cell)[one].only_defines]


def compute_nothing(cells: Sequence[Cell], chosen: Chosen) -> bool:
    """Whether these statements only import, define and name constants, so that rules hardly matter to them."""
    return not any(computing(cell, chosen[cell.number]) for cell in cells)
