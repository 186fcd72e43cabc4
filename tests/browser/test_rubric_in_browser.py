"""Written answers in a real browser: boxes become marks and comments in the gradebook, and the next page has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from lmcourse.grading.notebooks import new_markdown_cell
from tests.authoring.tiny import SOURCE
from tests.grading.conftest import Course, needs_bubblewrap

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(1200)]

CONFIG = """
from pathlib import Path
from lmcourse.grading.config import configure
configure(get_config(), Path(__file__).parent)
"""
NAME = "w1-tiny"
TASK = """# %% [markdown] task="why" points="4"
# Why twice?
#
# ### BEGIN MARK SCHEME
# - 1½ · a cause with `units`
# - 0.25 · <b>short</b>
# - 2.25 · a measurement
#
# Half of a cause counts as none.
# ### END MARK SCHEME

# %% [markdown]
# ## What to keep
"""
ATTACK = "</pre></article><script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A teacher's course of one notebook with a question, and a recorded class."""
    course = Course(tmp_path_factory.mktemp("teacher"))
    (course.root / "nbgrader_config.py").write_text(CONFIG)
    folder = course.root / "solutions" / NAME
    folder.mkdir(parents=True)
    (folder / "exercises.py").write_text("from tests.authoring.tiny import EXERCISES\n")
    (folder / "tiny.py").write_text(f"{SOURCE}\n{TASK}")
    course.run("lmcourse", "--course", ".", "build")
    for student, below in (("ada", ["It adds x.", ATTACK]), ("bo", []), ("cy", [])):
        notebook = nbformat.read(course.root / "notebooks" / NAME / "tiny.ipynb", as_version=4)
        place = next(place for place, cell in enumerate(notebook.cells) if cell["id"] == "why")
        assert "MARK SCHEME" not in str(notebook)
        if student == "bo":
            notebook.cells[place].source += "\n\nTyped into the question."
            notebook.cells[place + 1].source += "\n\nAnd into the next cell."
        notebook.cells[place + 1 : place + 1] = [new_markdown_cell(text) for text in below]
        file = course.submitted / student / NAME / "tiny.ipynb"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(notebook))
    course.grade("--record")
    return course


def opened(browser: Browser, course: Course) -> Page:
    """Make the page, and open it."""
    assert "report/why.html (answers: 3)." in course.run("lmcourse", "grade", "submitted", "--rubric", "why")
    page = browser.new_page()
    page.goto((course.root / "report" / "why.html").as_uri())
    return page


def gradebook(course: Course) -> dict[str, tuple[float, str, bool]]:
    """Return each learner's mark for the question, the comment, and whether formgrader still asks for a mark."""
    from nbgrader.api import Gradebook

    found = {}
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as book:
        for student in ("ada", "bo", "cy"):
            grade, comment = (find("why", "tiny", NAME, student) for find in (book.find_grade, book.find_comment))
            found[student] = float(grade.score), str(comment.comment or ""), bool(grade.needs_manual_grade)
    return found


def test_boxes_become_marks_and_come_back(course: Course, browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, course)
    texts = page.locator("article pre").all_inner_texts()
    assert texts == [f"It adds x.\n\n{ATTACK}", "Typed into the question.\n\nAnd into the next cell.", texts[2]]
    assert texts[2] == "Nothing is written below the question."
    assert page.title() == "why"
    ada, bo, _ = page.locator("article").all()
    ada.get_by_label("a cause with units").check()
    ada.get_by_label("a measurement").check()
    ada.get_by_label("Comment", exact=True).fill("Say where.\n*Twice.*")
    assert ada.locator("output").inner_text() == "3.75"
    bo.locator("select").focus()
    bo.locator("select").select_option("Say where.\n*Twice.*")
    assert page.locator("#count").inner_text() == "2 of 3 done"
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "why.json"
    file = tmp_path / "why.json"
    download.value.save_as(file)
    page.close()

    results = course.grade("--record", "--marks", str(file))
    words = "- 1.5 of 1.5 · a cause with `units`\n- 0 of 0.25 · <b>short</b>\n- 2.25 of 2.25 · a measurement"
    none = words.replace("1.5 of", "0 of").replace("2.25 of", "0 of")
    marks = gradebook(course)
    assert marks["ada"] == (3.75, f"{words}\n\nSay where.\n*Twice.*", False)
    assert marks["bo"] == (0.0, f"{none}\n\nSay where.\n*Twice.*", False)
    assert marks["cy"] == (0.0, "", True)
    assert results["ada"]["exercises"]["why"] == 3.75
    assert "Marks given by hand count: why 3.75." in results["ada"]["reason"]
    assert course.grade("--record", "--force")["ada"]["score"] == results["ada"]["score"]
    assert gradebook(course)["ada"] == marks["ada"]

    page = opened(browser, course)
    items = page.locator("article").first.locator("[data-item]")
    assert [box.is_checked() for box in items.all()] == [True, False, True]
    assert page.locator("textarea").first.input_value() == "Say where.\n*Twice.*"
    assert [box.is_checked() for box in page.locator(".is-done").all()] == [True, True, False]
    page.close()
    course.run("nbgrader", "generate_feedback", NAME, "--student", "ada")
    assert "a measurement" in (course.root / "feedback" / "ada" / NAME / "tiny.html").read_text()


def test_file_of_marks_is_only_data_and_fits_the_mark_scheme(course: Course, tmp_path: Path) -> None:
    file = tmp_path / "marks.json"
    items = [[1.5, "a cause with `units`"], [0.25, "<b>short</b>"], [2.25, "a measurement"]]
    good = {"assignment": NAME, "task": "why", "items": items, "marks": {"zoe": {"items": [0], "comment": ""}}}
    before = gradebook(course)
    command = ("lmcourse", "grade", "submitted", "--record", "--marks", str(file))
    for wrong in (
        {"marks": {"ada": {"items": [3], "comment": ""}}},
        {"marks": {"ada": {"items": [-1], "comment": ""}}},
        {"marks": ["ada"]},
        {"assignment": "../w1-tiny"},
        {"items": items[:2]},
    ):
        file.write_text(json.dumps(good | wrong))
        said = course.run(*command, rc=2)
        assert "is no file of marks" in said or "make the page again" in said
    file.write_text(json.dumps(good))
    course.run(*command)
    assert "zoe has no recorded submission: no mark for why." in course.told
    assert gradebook(course) == before
    assert "Questions graded by hand: why." in course.run("lmcourse", "grade", "submitted", "--rubric", "wy", rc=2)
