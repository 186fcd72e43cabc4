"""The course's cells are put back into a submission."""

from __future__ import annotations

from typing import Any

import pytest
from nbformat import NotebookNode

from lmcourse.grading.notebooks import (
    METADATA_KEY,
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_raw_cell,
    problem_of,
)
from lmcourse.grading.restore import CourseCell, restored

CHECK = "check(f)\n### BEGIN HIDDEN TESTS\ncheck(f, hidden=True)\n### END HIDDEN TESTS"


def marks(name: str, **said: Any) -> dict[str, Any]:
    fixed = {"schema_version": 3, "grade_id": name, "grade": False, "solution": False, "locked": False, "task": False}
    return fixed | said


COURSE = {
    "f": CourseCell("def f():\n    raise NotImplementedError", "code", marks("f", solution=True)),
    "check_f": CourseCell(CHECK, "code", marks("check_f", grade=True, locked=True, points=2)),
}


def answer(text: str = "def f(): return 1", **parts: Any) -> NotebookNode:
    return new_code_cell(text, **{"id": "f", "metadata": {"nbgrader": {"grade_id": "f"}}} | parts)


def check(text: str = "check(f)", **parts: Any) -> NotebookNode:
    return new_code_cell(text, **{"id": "check_f", "metadata": {"nbgrader": {"grade_id": "check_f"}}} | parts)


def put_back(*cells: NotebookNode) -> NotebookNode:
    return restored(new_notebook(cells=list(cells)), COURSE, "01-tiny")


def shown(notebook: NotebookNode) -> list[tuple[str, str]]:
    return [(cell.metadata.get("nbgrader", {}).get("grade_id", ""), cell.source) for cell in notebook.cells]


RIGHT = [("f", "def f(): return 1"), ("check_f", CHECK)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([answer(), check()], RIGHT),
        ([answer(metadata={}), check(metadata={})], RIGHT),
        ([answer()], RIGHT),
        ([check(), answer()], [("check_f", CHECK), ("f", "def f(): return 1")]),
        ([answer(), check("full_marks()")], RIGHT),
        ([answer(), check(metadata={"nbgrader": {"grade_id": "check_f", "points": 99, "grade": False}})], RIGHT),
        (
            [answer(), new_markdown_cell("check(f)", id="check_f", metadata={"nbgrader": {"grade_id": "check_f"}})],
            RIGHT,
        ),
        (
            [answer("import math"), answer("def f(): return 1", id="g"), check()],
            [("f", "import math\ndef f(): return 1"), RIGHT[1]],
        ),
        (
            [answer(), check(), check(id="x"), answer("def f(): return 2", id="y")],
            [*RIGHT, ("", "check(f)"), ("", "def f(): return 2")],
        ),
        ([answer(COURSE["f"].source), answer(id="y"), check()], [("", COURSE["f"].source), *RIGHT]),
        (
            [check(), new_code_cell("f = 3", metadata={"nbgrader": {"grade_id": "g", "points": 9}})],
            [("check_f", CHECK), ("f", "f = 3")],
        ),
    ],
    ids=range(11),
)
def test_each_course_cell_occurs_once(cells: list[NotebookNode], expected: list[tuple[str, str]]) -> None:
    notebook = put_back(*cells)
    assert shown(notebook) == expected
    points = [cell.metadata["nbgrader"].get("points") for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert [value for value in points if value is not None] == [2]


def test_edited_and_deleted_checks_are_noted() -> None:
    assert put_back(answer(), check("1")).metadata[METADATA_KEY]["edited"] == ["check_f"]
    assert put_back(answer(), check("check(f)\n")).metadata[METADATA_KEY]["edited"] == []
    assert put_back(answer(), check(CHECK)).metadata[METADATA_KEY]["edited"] == []  # cells from a solution notebook
    assert put_back(answer()).metadata[METADATA_KEY]["put_back"] == ["check_f"]


def test_exercise_that_a_copy_lacks_is_noted_once() -> None:
    assert put_back(new_markdown_cell("", id="check_g")).metadata[METADATA_KEY]["absent"] == ["check_f"]
    notes = put_back(new_code_cell("def f(): return 0"), new_code_cell("def f(): return 1")).metadata[METADATA_KEY]
    assert (notes["absent"], notes["by_name"]) == ([], ["f"])


def test_question_is_compared_without_its_mark_scheme() -> None:
    text = "Why?\n### BEGIN MARK SCHEME\n2 points\n### END MARK SCHEME"
    course = {"why": CourseCell(text, "markdown", marks("why", task=True, locked=True, points=2))}
    handed_in = new_markdown_cell("Why?", metadata={"nbgrader": {"grade_id": "why"}})
    assert restored(new_notebook(cells=[handed_in]), course, "w1").metadata[METADATA_KEY]["edited"] == []


def test_notebook_without_any_course_cell_is_reported() -> None:
    notebook = put_back(new_code_cell("print(1)"))
    assert problem_of(notebook).startswith("No cell of this notebook belongs to 01-tiny, and none")
    assert [name for name, _ in shown(notebook)] == ["", "check_f"]


def test_a_notebooks_own_metadata_is_dropped() -> None:
    notes = {METADATA_KEY: {"problem": "", "digest": "forged"}, "kernelspec": {"name": "evil", "display_name": "evil"}}
    cell = answer(metadata={"nbgrader": {"grade_id": "f"}, "lmcourse": {"grading": "skip"}, "tags": ["x"]})
    notebook = restored(new_notebook(cells=[cell, check()], metadata=notes), COURSE, "01-tiny")
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert "digest" not in notebook.metadata[METADATA_KEY]
    assert set(notebook.cells[0].metadata) == {"nbgrader"}


def test_raw_cell_is_shown_as_text() -> None:
    raw = new_raw_cell("<script>x</script>", id="raw")
    assert put_back(raw, answer(), check()).cells[0].source == "    <script>x</script>\n"
