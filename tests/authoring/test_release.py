"""The release that nbgrader makes has everything that a student needs, and no solutions or hidden tests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

from lmcourse.authoring.document import document, dumps, load_notebook
from lmcourse.authoring.execute import execute
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.release import has_student_work, release
from lmcourse.base.errors import CourseError
from lmcourse.grading.stubs import STUB
from tests.authoring.tiny import SOURCE, TINY, source_of

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("release")


@pytest.fixture(scope="module")
def executed(folder: Path) -> NotebookNode:
    source = source_of(SOURCE, folder)
    notebook = document(source, TINY)
    execute(notebook, source)
    return notebook


@pytest.fixture(scope="module")
def student(executed: NotebookNode) -> NotebookNode:
    return release(executed, TINY)


def test_a_student_finds_stubs_and_public_checks(student: NotebookNode) -> None:
    cells = {cell.id: cell.source for cell in student.cells}
    stub = "\n".join(f"    {line}" for line in STUB.split("\n"))
    assert cells["double"] == f'def double(x):\n    """Twice x."""\n{stub}'
    assert cells["half"] == "half = None  # a number in place of None"
    assert (cells["check_double"], cells["check_half"]) == ("check(double)", "check(half=half)")


def test_cells_without_marks_are_left_to_the_author(student: NotebookNode, executed: NotebookNode) -> None:
    ours = ("double", "half", "check_double", "check_half")
    assert [cell.id for cell in student.cells] == [cell.id for cell in executed.cells]
    for theirs, mine in zip(student.cells, executed.cells, strict=True):
        if mine.id not in ours:
            assert (theirs.source, theirs.metadata, theirs.cell_type) == (mine.source, mine.metadata, mine.cell_type)


def test_a_release_contains_no_solutions(student: NotebookNode) -> None:
    text = dumps(student)
    hidden = ["return x + x", "half = 1 / 2", "HIDDEN", "hidden=True", "SOLUTION", "tiny.py", "jupytext", "timestamp"]
    assert [words for words in hidden if words in text] == []
    assert all(not cell.outputs and cell.execution_count is None for cell in student.cells if cell.cell_type == "code")
    assert all("execution" not in cell.metadata for cell in student.cells)


def test_checksums_match_nbgraders_and_are_stable(student: NotebookNode, executed: NotebookNode, folder: Path) -> None:
    from nbgrader.utils import compute_checksum

    marked = [cell for cell in student.cells if "nbgrader" in cell.metadata]
    assert len(marked) == 4
    assert all(cell.metadata.nbgrader.checksum == compute_checksum(cell) for cell in marked)
    unexecuted = document(source_of(SOURCE, folder), TINY)
    assert dumps(release(unexecuted, TINY)) == dumps(student) == dumps(release(executed, TINY))


def test_a_release_does_not_change_its_solution_notebook(executed: NotebookNode) -> None:
    before = copy.deepcopy(executed)
    release(executed, TINY)
    assert executed == before


@pytest.mark.parametrize("secret", ["BEGIN SOLUTION", "### END SOLUTION", "BEGIN HIDDEN TESTS", "hidden=True"])
def test_a_copy_that_contains_a_solution_is_rejected(secret: str, executed: NotebookNode) -> None:
    leaking = copy.deepcopy(executed)
    leaking.cells[-1].metadata["tags"] = [f"because {secret}"]
    with pytest.raises(CourseError, match=r"98-tiny: .* is left in the student copy"):
        release(leaking, TINY)


def test_nbgraders_own_error_message_is_shown(executed: NotebookNode) -> None:
    broken = copy.deepcopy(executed)
    broken.cells[3].metadata.nbgrader["grade_id"] = "check_double"
    with pytest.raises(CourseError, match=r"98-tiny: nbgrader cannot make the student copy(.|\n)*check_double"):
        release(broken, TINY)


def test_no_gradebook_is_opened(executed: NotebookNode, student: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a gradebook would take seconds, and it is not needed."""
    monkeypatch.setattr("nbgrader.api.Gradebook.__init__", lambda *_, **__: pytest.fail("a gradebook was opened"))
    assert dumps(release(executed, TINY)) == dumps(student)


@pytest.mark.parametrize("text", ["", "no notebook", "{}"])
def test_a_damaged_copy_counts_as_work(text: str, files: ChapterFiles) -> None:
    assert not has_student_work(files.release.with_name("nowhere.ipynb"))
    files.release.write_text(text)
    assert has_student_work(files.release)


@pytest.mark.parametrize(
    ("change", "work"),
    [
        (lambda copy: copy.cells[1].update(outputs=[new_output("stream", text="run, and nothing more")]), False),
        (lambda copy: copy.cells[0].update(source="a note of mine"), True),
        (lambda copy: copy.cells.pop(3), True),
        (lambda copy: copy.metadata.pop("lmcourse"), True),
        (lambda copy: copy.metadata.update(lmcourse="ours"), True),
    ],
    ids=["a run", "a note", "a deleted cell", "no digest", "no digest of ours"],
)
def test_changes_of_a_learner_count_as_work(
    change: Callable[[NotebookNode], object], work: bool, files: ChapterFiles
) -> None:
    notebook = load_notebook(files.release)
    assert notebook is not None
    change(notebook)
    files.release.write_text(dumps(notebook))
    assert has_student_work(files.release) is work


TASK = """# %% [markdown] task="why_twice" points="3"
# Why twice? Write your answer into a cell below.
#
# ### BEGIN MARK SCHEME
# 1 point for the sum, 2 for the reason.
# ### END MARK SCHEME

"""


def test_a_question_graded_by_hand_keeps_its_rubric_from_students(tmp_path: Path) -> None:
    place = '# %% exercise="double"'
    notebook = document(source_of(SOURCE.replace(place, f"{TASK}{place}"), tmp_path), TINY)
    [mine] = [cell for cell in notebook.cells if cell.id == "why_twice"]
    [theirs] = [cell for cell in release(notebook, TINY).cells if cell.id == "why_twice"]
    assert (mine.metadata.nbgrader.task, mine.metadata.nbgrader.points) == (True, 3)
    assert "2 for the reason" in mine.source
    assert theirs.source.strip() == "Why twice? Write your answer into a cell below."
