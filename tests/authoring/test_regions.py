"""Test regions that nbgrader removes, and markers that it would misread."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse.authoring.source import HIDDEN, SOLUTION, Region, find_regions, student_text
from lmcourse.grading.stubs import STUB

TWO = """def f():
    ### BEGIN SOLUTION
    a = 1
    ### END SOLUTION
    b = 2
    if b:
        ### BEGIN SOLUTION
        return a
        ### END SOLUTION"""


def test_regions_are_found_with_their_lines() -> None:
    hidden = f"{TWO}\n### BEGIN HIDDEN TESTS\nf()\n### END HIDDEN TESTS"
    assert find_regions(hidden) == ([Region(SOLUTION, 1, 3), Region(SOLUTION, 6, 8), Region(HIDDEN, 9, 11)], [])


VALUE = "x = None  # a number\n### BEGIN SOLUTION\nx = 2\n### END SOLUTION"


@pytest.mark.parametrize(
    "text", [TWO, VALUE, f"{VALUE}\n\ny = x", VALUE[VALUE.index("\n") + 1 :], f"{TWO}\n\n\n{VALUE}\n"]
)
def test_student_text_matches_nbgraders(text: str) -> None:
    from nbgrader.preprocessors import ClearSolutions

    from lmcourse.grading.preprocessors import DropTopLevelStubs

    marks = {"schema_version": 3, "solution": True, "grade": False, "locked": False, "task": False, "grade_id": "f"}
    notebook = new_notebook(cells=[new_code_cell(text, metadata={"nbgrader": marks})])
    for step in (ClearSolutions(code_stub={"python": STUB}), DropTopLevelStubs()):
        step.preprocess(notebook, {})
    assert student_text(text) == notebook.cells[0].source


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a\n### BEGIN SOLUTION\nb", 1, "missing ### END SOLUTION"),
        ("a\n### END SOLUTION", 1, "### END SOLUTION without its BEGIN"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", 0, "missing ### END SOLUTION"),
        ("### BEGIN SOLUTION\n### END HIDDEN TESTS", 1, "### END HIDDEN TESTS without its BEGIN"),
        ("### BEGIN SOLUTION\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS", 0, "missing ### END SOLUTION"),
        ("### BEGIN SOLUTON\nx", 0, "'### BEGIN SOLUTON' is no marker"),
        ("###BEGIN SOLUTION", 0, "is no marker"),
        ("x = 1  ### BEGIN SOLUTION", 0, "is no marker"),
        ("print('BEGIN HIDDEN TESTS')", 0, "is no marker"),
    ],
)
def test_markers_that_nbgrader_misreads_are_reported(text: str, line: int, told: str) -> None:
    number, message = find_regions(text)[1][0]
    assert (number, told in message) == (line, True), message


@pytest.mark.parametrize("text", ["### End of the story", "# begin with the solution", "begins = ends", "# at the end"])
def test_ordinary_comments_are_not_markers(text: str) -> None:
    assert find_regions(text) == ([], [])
