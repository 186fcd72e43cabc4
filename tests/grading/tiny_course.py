"""A course with one tiny notebook, and learners' copies that tests can change."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lmcourse.report import CHECK_PREFIX, check_id

REPOSITORY = Path(__file__).resolve().parents[2]
ASSIGNMENT = "01-tiny"
NAME = "tiny.ipynb"
EXERCISES = ("one", "two", "three")
POINTS = 2

SET_UP = """
def check(answer, *, hidden=False):
    return answer(hidden)   # here an answer says itself what it is worth
"""
"""The set-up cell, which is fast, because most traps are about cells and scores and need no real exercise."""

SECRET = "check({name}, hidden=True)  # the secret of {name}"

RIGHT = "def {name}(hidden):\n    return 2"


def solution_cell(name: str, answer: str = RIGHT) -> NotebookNode:
    marks = {
        "schema_version": 3,
        "grade": False,
        "solution": True,
        "locked": False,
        "task": False,
        "grade_id": name,
    }
    source = answer.format(name=name)
    if answer == RIGHT:
        head, body = source.split("\n", 1)
        source = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    return new_code_cell(source, metadata={"nbgrader": marks}, id=f"answer-{name}")


def graded_cell(name: str, points: float = POINTS) -> NotebookNode:
    marks = {"schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False}
    marks |= {"points": points, "grade_id": check_id(name)}
    source = f"check({name})\n### BEGIN HIDDEN TESTS\n{SECRET.format(name=name)}\n### END HIDDEN TESTS"
    return new_code_cell(source, metadata={"nbgrader": marks}, id=f"check-{name}")


def tiny_notebook(set_up: str = SET_UP, names: Sequence[str] = EXERCISES) -> NotebookNode:
    """Return the author's notebook."""
    cells = [new_markdown_cell("# Tiny", id="title"), new_code_cell(set_up.strip(), id="set-up")]
    for name in names:
        cells += [solution_cell(name), graded_cell(name)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


class Submission:
    """A learner's copy of the release, which methods can change."""

    def __init__(self, release: NotebookNode) -> None:
        self.nb = copy.deepcopy(release)
        for name in EXERCISES:
            self.answer(name, RIGHT.format(name=name))

    def place(self, identity: str) -> int:
        return [cell["id"] for cell in self.nb.cells].index(identity)

    def cell(self, identity: str) -> NotebookNode:
        return self.nb.cells[self.place(identity)]

    def answer(self, name: str, source: str) -> None:
        self.cell(f"answer-{name}").source = source

    def returns(self, name: str, expression: str) -> None:
        self.answer(name, f"def {name}(hidden):\n    return {expression}")

    def delete(self, *identities: str) -> None:
        self.nb.cells = [cell for cell in self.nb.cells if cell["id"] not in identities]

    def insert(self, place: int, cell: NotebookNode) -> None:
        self.nb.cells.insert(place, cell)

    def code(self, source: str, *, before: str = "title") -> None:
        self.insert(self.place(before), new_code_cell(source))

    def copied(self, identity: str, *, to: int, **changes: Any) -> None:
        twin = copy.deepcopy(self.cell(identity))
        twin.update(changes)
        twin["id"] = f"copy-{len(self.nb.cells)}"
        self.insert(to, twin)


class Course:
    """A folder with a tiny course, for plain `nbgrader` commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copy(REPOSITORY / "nbgrader_config.py", root)
        self.source = root / "solutions" / ASSIGNMENT / NAME
        self.source.parent.mkdir(parents=True)
        write(tiny_notebook(), self.source)
        (self.source.parent / "tiny.py").write_text("# BEGIN SOLUTION: the author's source, with every answer")
        (self.source.parent / "data.csv").write_text("1,2,3")

    def nbgrader(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a plain nbgrader command in the folder."""
        python_path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "nbgrader", *command],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": python_path} | environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    @property
    def release(self) -> Path:
        return self.root / "notebooks" / ASSIGNMENT / NAME

    def submit(self, student: str, nb: NotebookNode | str | bytes, name: str = NAME) -> Path:
        path = self.root / "submitted" / student / ASSIGNMENT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(nb, bytes):
            path.write_bytes(nb)
        elif isinstance(nb, str):
            path.write_text(nb)
        else:
            path.write_text(json.dumps(nb))
        return path

    def graded(self, student: str) -> Path:
        return self.root / "autograded" / student / ASSIGNMENT / NAME

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / ASSIGNMENT / NAME).with_suffix(".html").read_text()

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Return the points in the gradebook by student and graded cell, with the exercises' names."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.root}/gradebook.db") as book:
            return {
                submission.student.id: {
                    grade.name.removeprefix(CHECK_PREFIX): None if grade.auto_score is None else grade.score
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                }
                for submission in book.assignment_submissions(ASSIGNMENT)
            }
