"""What was read and what nbgrader gets: the course's cells, each once, whatever was handed in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from lmcourse.grading.batch import ExaminationSettings
from lmcourse.grading.cells import problem_of
from lmcourse.grading.intake import notebook as notebook_format
from lmcourse.grading.intake.exporter import SubmissionExporter
from lmcourse.grading.intake.notebook import read_submission
from lmcourse.grading.intake.submissions import Assignment
from lmcourse.grading.preprocessors.restore_cells import RestoreCells
from lmcourse.grading.workspace import NbgraderWorkspace
from lmcourse.report import check_id
from tests.grading.strange import ANYTHING, REPLACED, sound
from tests.grading.tiny_course import ASSIGNMENT, EXERCISES, NAME, Course


class Desk:
    """Where nbgrader's first step is done: a file is read, and the course's cells are put back into it."""

    def __init__(self, root: Path) -> None:
        course = Course(root / "course")
        (root / "workspace").mkdir()
        workspace = NbgraderWorkspace.temporary(root / "workspace", ExaminationSettings("process", 1))
        assignment = Assignment(ASSIGNMENT, course.source)
        workspace.copy_source(assignment)
        workspace.add_assignment(assignment)
        self.file = root / NAME
        self.about = {"db_url": workspace.course.db_url, "assignment": ASSIGNMENT, "notebook": Path(NAME).stem}
        self.again = root / "again.ipynb"

    def restored(self, handed_in: bytes) -> NotebookNode:
        self.file.write_bytes(handed_in)
        exporter = SubmissionExporter(preprocessors=[RestoreCells])
        text, _ = exporter.from_filename(str(self.file), {"nbgrader": dict(self.about)})
        self.again.write_text(text, "utf-8")
        return nbformat.reads(text, as_version=4)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    root = tmp_path_factory.mktemp("desk").resolve()
    (root / "course").mkdir()
    return Desk(root)


def checks(nb: NotebookNode) -> list[str]:
    marks = [cell.metadata.get("nbgrader", {}) for cell in nb.cells]
    return [each["grade_id"] for each in marks if each.get("grade")]


def is_sound(desk: Desk, handed_in: bytes) -> NotebookNode:
    """The oracle for everything."""
    nb = desk.restored(handed_in)
    nbformat.validate(nb)
    assert sorted(checks(nb)) == sorted(check_id(name) for name in EXERCISES)
    assert nb.metadata.keys() == {"kernelspec", "lmcourse"}
    assert all(
        cell.source.count("hidden=True") == 1 for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade")
    )
    assert problem_of(nb).isprintable()
    # nbgrader reads what it wrote once more, and nothing may be lost then.
    again = read_submission(desk.again)
    assert [(cell.source, cell.metadata) for cell in again.cells] == [(cell.source, cell.metadata) for cell in nb.cells]
    assert again.metadata == nb.metadata
    return nb


@settings(max_examples=40, deadline=None)
@given(notebook=REPLACED)
def test_every_check_is_there_once_whatever_is_replaced(desk: Desk, notebook: Any) -> None:
    is_sound(desk, json.dumps(notebook).encode())


@settings(max_examples=40, deadline=None)
@given(
    marks=st.fixed_dictionaries(
        {},
        optional={
            "grade_id": ANYTHING | st.sampled_from([check_id(name) for name in EXERCISES] + list(EXERCISES)),
            "grade": ANYTHING,
            "solution": ANYTHING,
            "locked": ANYTHING,
            "task": ANYTHING,
            "points": ANYTHING,
            "cell_type": ANYTHING,
            "schema_version": ANYTHING,
            "__proto__": ANYTHING,
        },
    ),
    kind=st.sampled_from(["code", "markdown", "raw", "heading", "sql", "", 7]),
    place=st.integers(0, 8),
)
def test_a_cell_may_claim_anything(desk: Desk, marks: Any, kind: Any, place: int) -> None:
    notebook = sound()
    cell = {"cell_type": kind, "id": "title", "metadata": {"nbgrader": marks}, "source": "mine"}
    notebook["cells"].insert(place, cell)
    nb = is_sound(desk, json.dumps(notebook).encode())
    assert not problem_of(nb)


@pytest.mark.parametrize("handed_in", [b"", b"{", b"PK\x03\x04", b'{"nbformat": 4, "cells": []}'])
def test_without_a_notebook_there_are_the_checks_and_a_reason(desk: Desk, handed_in: bytes) -> None:
    nb = is_sound(desk, handed_in)
    assert problem_of(nb)
    assert len(nb.cells) == len(EXERCISES)


def test_at_the_limit_the_cells_that_are_put_back_count_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nbgrader's second reading would refuse what its first one let through."""
    monkeypatch.setattr(notebook_format, "MAX_CELLS", 20)
    notebook = sound()
    notebook["cells"] = notebook["cells"][:3] + [{"cell_type": "code", "metadata": {}, "source": ""}] * 17
    nb = is_sound(desk, json.dumps(notebook).encode())
    assert "more than 20 cells" in problem_of(nb)


def test_lines_of_a_raw_cell_are_indented_and_count_as_such(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_format, "MAX_SOURCE_CHARS", 2_000)
    notebook = sound()
    notebook["cells"].append({"cell_type": "raw", "metadata": {}, "source": "\n" * 1_000})
    nb = is_sound(desk, json.dumps(notebook).encode())
    assert "more than 2,000 characters" in problem_of(nb)


def test_a_folder_that_is_a_link_stands_for_nobody(tmp_path: Path) -> None:
    """As nbgrader lays submissions out; anywhere else a link on the way is the grader's own."""
    mine = tmp_path / "submitted" / "bob" / ASSIGNMENT
    mine.mkdir(parents=True)
    (mine / NAME).write_text(json.dumps(sound()))
    (tmp_path / "submitted" / "alice").symlink_to(tmp_path / "submitted" / "bob")
    theirs = tmp_path / "submitted" / "alice" / ASSIGNMENT / NAME
    for resources, told in (({"nbgrader": {"student": "alice"}}, "The folder alice is a link"), ({}, None)):
        _, resources = SubmissionExporter().from_filename(str(theirs), resources)
        assert resources.get("problem", "").startswith(told) if told else "problem" not in resources


def handed_in(*cells: tuple[str, str]) -> bytes:
    """The tiny notebook with these cells, grade ids and texts, in place of the one for the first answer."""
    notebook = sound()
    place = next(n for n, cell in enumerate(notebook["cells"]) if cell["id"] == f"answer-{EXERCISES[0]}")
    cell = notebook["cells"][place]
    twins = [
        cell | {"id": f"twin-{n}", "source": text, "metadata": cell["metadata"] if name else {}}
        for n, (name, text) in enumerate(cells)
    ]
    notebook["cells"][place : place + 1] = twins
    return json.dumps(notebook).encode()


@pytest.mark.parametrize(
    ("cells", "answer"),
    [
        ([("one", "def one(hidden):"), ("one", "    return 2")], "def one(hidden):\n    return 2"),
        ([("one", "a = 1"), ("one", "b = 2"), ("one", "c = 3")], "a = 1\nb = 2\nc = 3"),
        ([("one", "STUB"), ("", "x = 1"), ("one", "def one(hidden): return 2")], "def one(hidden): return 2"),
        ([("one", "def one(hidden): return 2"), ("one", "STUB")], "def one(hidden): return 2"),
        ([("one", "a = 1"), ("", "x = 1"), ("one", "b = 2")], "a = 1"),
        ([("one", "STUB"), ("one", "STUB")], "STUB"),
    ],
    ids=["split", "split twice", "answered in a copy", "a copy of the stub", "two answers", "stubs"],
)
def test_an_answer_is_one_cell(desk: Desk, cells: list[tuple[str, str]], answer: str) -> None:
    """JupyterLab's "Split Cell" and copies both leave several cells that say they are the course's."""
    with Gradebook(desk.about["db_url"]) as book:
        notebook = book.find_notebook(desk.about["notebook"], desk.about["assignment"])
        [stub] = [cell.source for cell in notebook.source_cells if cell.name == EXERCISES[0]]
    given = [(name, text.replace("STUB", stub)) for name, text in cells]
    restored = desk.restored(handed_in(*given))
    [found] = [
        cell.source for cell in restored.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == EXERCISES[0]
    ]
    assert found == answer.replace("STUB", stub)
