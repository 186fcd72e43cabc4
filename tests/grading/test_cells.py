"""Cells are read as in IPython, and grading runs the right ones."""

from __future__ import annotations

import pytest

from lmcourse.grading.cells import cells_to_run, course_imports, read_cell


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("files = !ls", "files = get_ipython().getoutput('ls')\n"),
        ("%%time\nx = 1", "#\nx = 1\n"),
        ("%%capture\nx = 1", "#\nx = 1\n"),
        ("await f()", "await f()\n"),
        ("", "\n"),
    ],
)
def test_cell_is_read_as_ipython_reads_it(source: str, text: str) -> None:
    cell = read_cell(1, source)
    assert (cell.text or "\n", cell.problem) == (text, "")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(x:\n    return", "SyntaxError"),
        ("x = 1\n  y = 2", "IndentationError"),
        ("x = " + "(" * 1000 + ")" * 1000, "Error"),
        ("x = 1  # " + "x" * 200_000, "more than 200,000 characters"),
        ("x = '\x00'", "null bytes"),
    ],
)
def test_cell_that_is_not_python_has_a_problem(source: str, problem: str) -> None:
    cell = read_cell(1, source)
    assert cell.text == ""
    assert problem in cell.problem
    assert cell.problem.isprintable()


def test_imports_of_the_course_are_found_in_its_cells() -> None:
    cells = ["import torch\nx = torch.ones(2)", "from math import pi, e\nprint(pi)", "%matplotlib inline\nimport torch"]
    assert course_imports(cells) == "import torch\nfrom math import pi, e"


DEMONSTRATION = "rows = train()\nn = 3\nx: int = 1\nimport extra"


def numbers(*texts: str, skipped: str = DEMONSTRATION, answer: int = 0) -> list[int]:
    """Return the numbers of the cells that run; `answer` is the number of an answer cell."""
    cells = [read_cell(number, text, "f" if number == answer else "") for number, text in enumerate(texts, 1)]
    return [cell.number for cell in cells_to_run(cells, {skipped.strip()})]


@pytest.mark.parametrize(
    ("texts", "answer", "run"),
    [
        (["import torch", DEMONSTRATION, "def f(): return 1"], 3, [1, 3]),
        (["import torch", DEMONSTRATION, "n = 3\nprint(n * 2)", "def f(): return 1"], 4, [1, 3, 4]),
        (["print(rows)", DEMONSTRATION, "def f(): return 1"], 3, [1, 3]),
        ([DEMONSTRATION, "def f(): return rows"], 2, [1, 2]),
        ([DEMONSTRATION, "def helper(): return rows", "def f(): return helper()"], 3, [1, 2, 3]),
        ([DEMONSTRATION, "def helper(): return rows", "def f(): return 1"], 3, [2, 3]),
        ([DEMONSTRATION, "rows = 4", "def f(): return rows"], 3, [2, 3]),
        ([DEMONSTRATION, "def f(rows):\n    n = rows\n    return n"], 2, [2]),
        ([f"{DEMONSTRATION}\nprint(n)", "def f(): return 1"], 2, [1, 2]),  # the learner has changed the demonstration
    ],
)
def test_demonstration_runs_only_for_an_answer_that_needs_it(texts: list[str], answer: int, run: list[int]) -> None:
    assert numbers(*texts, answer=answer) == run
