"""Requests to grade again: which lines are one, and what they are about."""

from __future__ import annotations

import pytest

from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook
from lmcourse.grading.regrade import MAX_REQUESTS, regrade_requests

LINES = {
    "regrade 08 causal_mask: it is right": ("08-attention", "causal_mask", "it is right", True),
    "Regrade 8 causal_mask : it is right": ("08-attention", "causal_mask", "it is right", True),
    "# regrade 08-attention `causal_mask`: see the paper, page 3": (
        *("08-attention", "causal_mask"),
        *("see the paper, page 3", True),
    ),
    "**regrade 01 ulp: why?": ("01-floating-point", "ulp", "why?", True),
    "regrade 01 causal_mask: wrong notebook": ("01-floating-point", "causal_mask", "wrong notebook", False),
    "regrade 77 causal_mask: no notebook": ("77", "causal_mask", "no notebook", False),
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("cell", [new_markdown_cell, new_code_cell])
def test_a_request_in_a_cell_of_its_own(line: str, cell: object) -> None:
    nb = new_notebook(cells=[cell(f"Hello,\n{line}\nThanks")])  # type: ignore[operator]
    [found] = regrade_requests(nb)
    assert (found.assignment, found.exercise, found.reason, found.known) == LINES[line]


@pytest.mark.parametrize(
    "line", ["regrade 08 causal_mask", "regrade causal_mask: please", "please regrade 08 x: y", ""]
)
def test_other_lines_are_none(line: str) -> None:
    assert regrade_requests(new_notebook(cells=[new_markdown_cell(line)])) == ()


def test_the_cells_of_the_course_make_none_and_there_is_an_end() -> None:
    said = "regrade 08 causal_mask: it is right"
    own = new_markdown_cell(said, metadata={"nbgrader": {"grade_id": "x"}})
    assert regrade_requests(new_notebook(cells=[own])) == ()
    many = [new_markdown_cell(f"{said} {number}") for number in range(50)]
    assert len(regrade_requests(new_notebook(cells=many))) == MAX_REQUESTS
    [long] = regrade_requests(new_notebook(cells=[new_markdown_cell(said + "\x00" + "!" * 5000)]))
    assert len(long.reason) <= 300
    assert long.reason.isprintable()
