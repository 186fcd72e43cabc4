"""`lmcourse build --check` reports every file that differs from its source's output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

from lmcourse.authoring.build import check_built
from lmcourse.authoring.document import dumps, load_notebook
from lmcourse.authoring.folders import ChapterFiles
from tests.authoring.tiny import SOURCE, TINY, write_source

pytestmark = pytest.mark.prove

SOLUTION = "solutions/98-tiny/tiny.ipynb"
RELEASE = "notebooks/98-tiny/tiny.ipynb"
STALE = "is not what tiny.py builds: run `lmcourse build 98`"


def edit(path: Path, change: Callable[[NotebookNode], object]) -> None:
    notebook = load_notebook(path)
    assert notebook is not None
    change(notebook)
    path.write_text(dumps(notebook))


def test_a_fresh_build_is_up_to_date(tiny_course: Path) -> None:
    assert check_built([TINY], tiny_course) == []
    assert check_built([], tiny_course) == []


@pytest.mark.parametrize("new", [("three lines", "3 lines"), ('tags=["hide-input"]', 'tags=["hidden"]')])
def test_a_changed_source_makes_both_notebooks_stale(new: tuple[str, str], tiny_course: Path) -> None:
    write_source(tiny_course, SOURCE.replace(*new))
    assert check_built([TINY], tiny_course) == [f"{SOLUTION} {STALE}", f"{RELEASE} {STALE}"]


def test_a_changed_answer_makes_only_the_solution_stale(tiny_course: Path) -> None:
    write_source(tiny_course, SOURCE.replace("x + x", "2 * x"))
    assert check_built([TINY], tiny_course) == [f"{SOLUTION} {STALE}"]


@pytest.mark.parametrize(
    "change",
    [
        lambda notebook: notebook.cells[0].update(source="Another title"),
        lambda notebook: notebook.cells[-1].metadata.pop("tags"),
        lambda notebook: notebook.cells[4].metadata.nbgrader.update(points=3),
        lambda notebook: notebook.cells[1].update(id="another"),
        lambda notebook: notebook.cells.pop(2),
        lambda notebook: notebook.metadata.update(jupytext={"formats": "ipynb,py:percent"}),
    ],
    ids=["text", "tag", "points", "id", "cell", "pairing"],
)
@pytest.mark.parametrize("name", [SOLUTION, RELEASE])
def test_an_edited_notebook_is_named(name: str, change: Callable[[NotebookNode], object], tiny_course: Path) -> None:
    edit(tiny_course / name, change)
    assert check_built([TINY], tiny_course) == [f"{name} {STALE}"]


@pytest.mark.parametrize("name", [SOLUTION, RELEASE])
def test_a_missing_or_damaged_notebook_is_named(name: str, tiny_course: Path) -> None:
    (tiny_course / name).write_text("<<<<<<< a merge")
    assert check_built([TINY], tiny_course) == [f"{name} {STALE}"]
    (tiny_course / name).unlink()
    assert check_built([TINY], tiny_course) == [f"{name} is missing: run `lmcourse build 98`"]


def test_only_outputs_of_a_release_are_compared(tiny_course: Path, files: ChapterFiles) -> None:
    for path, said in ((files.solution, []), (files.release, [f"{RELEASE} {STALE}"])):
        edit(path, lambda notebook: notebook.cells[-1].update(outputs=[new_output("stream", text="another day")]))
        assert check_built([TINY], tiny_course) == said


def test_cells_that_were_never_run_are_reported(tiny_course: Path, files: ChapterFiles) -> None:
    edit(files.solution, lambda notebook: notebook.cells[-1].update(execution_count=None))
    assert check_built([TINY], tiny_course) == [f"{SOLUTION} holds cells that were never run: run `lmcourse build 98`"]
