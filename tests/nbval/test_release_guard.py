"""`pytest --nbval notebooks` can fail: only open exercises may raise, and every cell that one reaches is run."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse.course import Chapter, available_chapters
from lmcourse.exercises.registry import exercises_of
from tests.nbval.release import code_of, shown_by_the_solution

SOLUTION = {"nbgrader": {"solution": True, "grade": False}}
CHECK = {"nbgrader": {"solution": False, "grade": True}}
RAISES = {"tags": ["raises-exception"]}

CELLS: list[tuple[str, dict[str, Any], bool]] = [
    ("x = 1", {}, True),
    ("def f():\n    raise NotImplementedError", SOLUTION, True),
    ("f()", CHECK, True),
    ("raise NotImplementedError", SOLUTION, True),
    ("undefined", CHECK, True),
    ("assert x == 2", CHECK, True),
    ("1 / 0", CHECK, False),
    ("[][0]", SOLUTION, False),
    ("undefined", {}, False),
    ("f()", {}, False),
    ("assert x == 2", {}, False),
    ("1 / 0", RAISES, True),
    ("x", {}, True),
]
"""What a cell says, its metadata, and whether it may say so in a student's copy."""


SHOWN = [
    ("import math\nfrom math import pi", "", True),
    ("scale = 3", "", True),
    ("unused = 1", "", False),
    ("rows = []", "", True),
    ("1 / 0  # the solution's own, and no stub reaches it", "", False),
    ("def double(x):\n    raise NotImplementedError", "def double(x):\n    return 2 * x", True),
    ("1 / 0", "1", True),
    ("double(scale)", "", True),
    ("rows.append(double(1))", "", True),
    ("len(rows)", "", True),
    ("twice = [double]\nmath.tau", "", True),
    ("def helper():\n    return twice[0](1)", "", True),
    ("[y for y in [helper]][0]()", "", True),
    ("math.pi", "", False),
]
"""What a cell says, what the solution says in its place ("" if the same), and whether it has to run."""


@pytest.fixture(scope="module")
def verdicts(course: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a real run says of each made-up cell."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(course / "conftest.py", root)
    write(root / "notebooks" / "01-made-up" / "made_up.ipynb", [new_code_cell(s, metadata=m) for s, m, _ in CELLS])
    write(root / "notebooks" / "02-shown" / "shown.ipynb", [new_code_cell(cell) for cell, _, _ in SHOWN])
    write(root / "solutions" / "02-shown" / "shown.ipynb", [new_code_cell(other or cell) for cell, other, _ in SHOWN])
    write(root / "notebooks" / "welcome.ipynb", [new_code_cell("1 / 0")])
    command = [sys.executable, "-m", "pytest", "--nbval", "notebooks", "--nbval-current-env", "-rA", "-q"]
    path = {"PYTHONPATH": str(course)}
    run = subprocess.run(
        command, cwd=root, env=os.environ | path, capture_output=True, text=True, timeout=120, check=False
    )
    return {cell: word for word, cell in re.findall(r"^(PASSED|FAILED|ERROR) (\S+::Cell \d+)", run.stdout, re.M)}


def write(path: Path, cells: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_only_an_open_exercise_may_raise_and_only_what_a_stub_raises(verdicts: dict[str, str], number: int) -> None:
    expected = "PASSED" if CELLS[number][2] else "FAILED"
    assert verdicts[f"notebooks/01-made-up/made_up.ipynb::Cell {number}"] == expected


def test_a_cell_that_differs_from_the_solution_or_that_a_stub_reaches_is_run(verdicts: dict[str, str]) -> None:
    ran = {cell.split()[-1]: word for cell, word in verdicts.items() if "/shown.ipynb" in cell}
    assert ran.keys() == {str(number) for number, (_, _, has_to_run) in enumerate(SHOWN) if has_to_run}
    assert {number for number, word in ran.items() if word == "FAILED"} == {"6", "7", "8", "12"}


def test_the_welcome_page_is_not_a_notebook_of_the_course(verdicts: dict[str, str]) -> None:
    assert {cell.split("::")[0] for cell in verdicts} == {
        "notebooks/01-made-up/made_up.ipynb",
        "notebooks/02-shown/shown.ipynb",
    }


@pytest.mark.parametrize("reach", ["eval('double(1)')", "globals()['double'](1)", "from os import path; vars()"])
def test_who_may_reach_anything_lets_everything_run(reach: str) -> None:
    cells = ["def double(x):\n    raise NotImplementedError", reach, "print(1)"]
    assert shown_by_the_solution(cells, ["def double(x):\n    return 2 * x", *cells[1:]]) == set()


def test_a_release_with_a_cell_too_few_runs_whole() -> None:
    assert shown_by_the_solution(["1", "2"], ["1", "2"]) == {0, 1}
    assert shown_by_the_solution(["1"], ["1", "2"]) == set()


@pytest.mark.parametrize("chapter", available_chapters(), ids=lambda chapter: chapter.id)
def test_of_a_real_release_each_changed_cell_and_each_that_names_an_answer_is_run(
    course: Path, chapter: Chapter
) -> None:
    place = Path(chapter.id) / f"{chapter.topic}.ipynb"
    release, solution = (code_of(course / folder / place) for folder in ("notebooks", "solutions"))
    names = {exercise.name for exercise in exercises_of(chapter)}
    shown = shown_by_the_solution(release, solution)
    assert (
        len(shown) > len(release) // 5
    )  # those that share no name, not even a loop variable, with what a stub reaches
    assert 0 not in shown
    named = (getattr(node, "id", "") for number in shown for node in ast.walk(ast.parse(release[number])))
    assert names.isdisjoint(named)
    for number in sorted(shown)[:: len(shown) // 2]:
        broken = f"{release[number]}\n1 / 0"
        assert number not in shown_by_the_solution([*release[:number], broken, *release[number + 1 :]], solution)
