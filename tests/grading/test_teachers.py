"""A teacher's own course folder: exercises next to a source, and a notebook with plain nbgrader tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell, new_markdown_cell, new_notebook
from tests.grading.conftest import Course, needs_bubblewrap, own_course

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(2400)]

EXERCISES = """
from lmcourse.exercises import Exercise, case


def _double(x):
    if x is None:
        raise ValueError("nothing to double")
    return 2 * x


double = Exercise(
    "double", points=4, minutes=1, difficulty=1, reference=_double,
    cases=[case("two", 2), case("three", 3), case("minus one", -1)],
    hidden_cases=lambda random: [*(case("large", random.randint(100, 999)) for _ in range(3)), case("bad input", None)],
)


@double.misconception("You square instead of doubling.")
def squared(x):
    return x * x


EXERCISES = (double,)
"""

SOURCE = """# %% [markdown]
# # Warm-up
#
# **20 min · 1 exercise · 4 points**

# %%
from lmcourse.notebook import check, hint, start

start("w1-warmup")

# %% [markdown]
# ### Exercise 1 · Double  (4 points · 1 min · ●)

# %% exercise="double"
def double(x):
    ### BEGIN SOLUTION
    if x is None:
        raise ValueError("nothing")
    return x + x
    ### END SOLUTION

# %% check="double"
check(double)
### BEGIN HIDDEN TESTS
check(double, hidden=True)
### END HIDDEN TESTS
"""


def plain(identity: str, source: str, **said: Any) -> NotebookNode:
    marks = {
        "schema_version": 3,
        "grade_id": identity,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
    }
    return new_code_cell(source, metadata={"nbgrader": marks | said}, id=identity)


def plain_notebook() -> NotebookNode:
    """Return a notebook as in nbgrader's documentation: answers, asserts, hidden tests, partial credit."""
    triple = "def triple(x):\n    ### BEGIN SOLUTION\n    return 3 * x\n    ### END SOLUTION"
    hidden = "assert triple(2) == 6\n### BEGIN HIDDEN TESTS\nassert triple(-1) == -3\n### END HIDDEN TESTS"
    test = {"grade": True, "locked": True}
    cells = [
        new_markdown_cell("# Plain", id="title"),
        plain("triple", triple, solution=True),
        plain("test_triple", hidden, points=2, **test),
        plain("partly", "import math\nmath.floor(triple(1)) / 2", points=3, **test),
        plain("essay", "### BEGIN SOLUTION\n# because\n### END SOLUTION", points=5, grade=True, solution=True),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The built course with two assignments."""
    course = own_course(tmp_path_factory.mktemp("teacher"), "w1-warmup", exercises=EXERCISES, warmup=SOURCE)
    (course.root / "solutions" / "w2-plain").mkdir()
    nbformat.write(plain_notebook(), course.root / "solutions" / "w2-plain" / "plain.ipynb")
    course.run("lmcourse", "--course", ".", "build")
    course.run("nbgrader", "generate_assignment", "w2-plain")
    return course


DOUBLE = {
    "ada": ("def double(x):\n    if x is None: raise ValueError\n    return x * 2", 4.0),
    "bob": ("def double(x):\n    return x * 2", 3.0),  # one of five groups, the bad input, fails
    "cy": ("def double(x):\n    return x * x", 0.0),
    "dee": ("", 0.0),
}
TRIPLE = {
    "ada": ("def triple(x):\n    return 3 * x", 2.0, 1.5),
    "bob": ("def triple(x):\n    return abs(3 * x)", 0.0, 1.5),
    "cy": ("import time\ndef triple(x): time.sleep(99)", 0.0, 0.0),
    "dee": ("import os; os._exit(0)", 0.0, 0.0),
}


def test_own_exercises_and_plain_tests_are_graded_both_ways(teacher: Course) -> None:
    for student, (answer, _) in DOUBLE.items():
        teacher.hand_in("w1-warmup", student, double=answer)
        teacher.hand_in("w2-plain", student, triple=TRIPLE[student][0])
    command = ("lmcourse", "--course", ".", "grade", "submitted", "--json", "--record", "--cell-seconds", "3")
    results = {(each["student"], each["assignment"]): each for each in json.loads(teacher.run(*command))}
    ours = {name: teacher.marks(name) for name in ("w1-warmup", "w2-plain")}
    for student, (_, points) in DOUBLE.items():
        assert ours["w1-warmup"][student] == {"double": points}, results[student, "w1-warmup"]["reason"]
        test, partly = TRIPLE[student][1:]
        assert ours["w2-plain"][student] == {"test_triple": test, "partly": partly, "essay": 0.0}
    assert "You square instead of doubling." in results["cy", "w1-warmup"]["reason"]
    assert "AssertionError, in line 3: `assert triple(-1) == -3`" in results["bob", "w2-plain"]["reason"].replace(
        ": in", ", in"
    )
    for name in ours:
        teacher.run("nbgrader", "autograde", name, "--force", "--ExamineNotebook.cell_seconds=3")
        assert teacher.marks(name) == ours[name]


def test_release_has_only_what_a_check_needs(teacher: Course) -> None:
    folder = teacher.root / "notebooks" / "w1-warmup"
    assert {path.name for path in folder.iterdir()} == {"warmup.ipynb"}
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "nothing to double" not in text
    assert "def _double" not in text


def test_exercises_that_cannot_be_loaded_are_reported_in_one_line(teacher: Course, tmp_path: Path) -> None:
    course = own_course(tmp_path, "w1-warmup", exercises="EXERCISES = (1 / 0,)")
    for folder in ("solutions", "notebooks"):
        shutil.copytree(
            teacher.root / folder, tmp_path / folder, dirs_exist_ok=True, ignore=lambda *_: ["exercises.py"]
        )
    course.hand_in("w1-warmup", "ada")
    said = course.run("lmcourse", "--course", ".", "grade", "submitted", rc=2)
    assert "exercises.py" in said
    assert "ZeroDivisionError" in said
    assert "Traceback" not in said
