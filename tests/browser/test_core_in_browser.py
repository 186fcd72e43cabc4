"""A learner's core in JupyterLab: a release without Further, a prediction of a number, and an open task.

The tests are steps in one session of notebook 08, in this order.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lmcourse.cli import main
from lmcourse.course.parts import FURTHER
from lmcourse.report import REPORT_MIME
from tests.browser.driver import COURSE, LONG, Lab, Notebook, solution_of, start_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

CHAPTER, TASK = "08-attention", "one_layer"
PATH = f"{CHAPTER}/attention.ipynb"
PREDICTION = 'predict("copying_starts")'
BASELINE = """def one_layer(x, source, w_q, w_k, w_v, w_out, heads, visible=None, turn=None, change=None):
    return multi_head(x, source, w_q, w_k, w_v, w_out, heads, visible, turn, change)
"""


@pytest.fixture(scope="module")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a release of the core of notebook 08."""
    teacher = tmp_path_factory.mktemp("teacher")
    for folder in ("solutions", "notebooks"):
        shutil.copytree(COURSE / folder / CHAPTER, teacher / folder / CHAPTER)
    for file in ("README.md", "nbgrader_config.py"):
        shutil.copy(COURSE / file, teacher)
    assert main(["--course", str(teacher), "build", "08", "--core"]) == 0
    with start_lab(tmp_path_factory.mktemp("lab"), teacher / "notebooks") as lab:
        yield lab


@pytest.fixture(scope="module")
def notebook(lab: Lab, browser: Browser) -> Iterator[Notebook]:
    """The core, run once from top to bottom, with nothing solved."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    notebook = Notebook.open(page, lab, PATH)
    notebook.run_all()
    yield notebook
    page.close()


def test_core_ends_before_further_and_runs_unsolved(notebook: Notebook) -> None:
    cells = notebook.cells()
    assert not any(FURTHER.search(cell["source"]) for cell in cells)
    assert "flash_backward" not in str(cells)
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert any(REPORT_MIME in output.get("data", {}) for output in outputs)


def test_number_is_guessed_by_keyboard_and_judged_in_words(notebook: Notebook, lab: Lab) -> None:
    asked = next(cell["id"] for cell in notebook.cells() if cell["source"].startswith(PREDICTION))
    shown = notebook.select(asked)
    shown.locator("input[type=text]").fill("80")
    notebook.page.keyboard.press("Tab")
    shown.get_by_role("button", name="This is my guess").focus()
    notebook.page.keyboard.press("Enter")
    told = shown.locator("[role=status]")
    told.wait_for(timeout=LONG)
    assert "80" in told.inner_text()
    assert "160" in told.inner_text()
    said = told.inner_text()
    notebook.save()
    Notebook.open(notebook.page, lab, PATH)
    again = notebook.select(asked).locator("[role=status]")
    again.wait_for(timeout=90_000)
    assert again.inner_text() == said, "the guess is remembered"


@pytest.mark.parametrize(("answer", "points"), [(BASELINE, 1), (solution_of(TASK, CHAPTER, "attention"), 4)])
def test_open_task_shows_its_table(notebook: Notebook, answer: str, points: int) -> None:
    for name, text in (("multi_head", solution_of("multi_head", CHAPTER, "attention")), (TASK, answer)):
        notebook.write(name, text)
        notebook.run(name)
    notebook.run(f"check_{TASK}")
    [output] = notebook.cell(f"check_{TASK}")["outputs"]
    assert output["data"][REPORT_MIME]["points"] == points
    table = notebook.select(f"check_{TASK}").locator("section[role=status] table")
    rows = [row.inner_text().split("\t") for row in table.locator("tr").all()]
    assert rows[0][1:] == ["run 1", "run 2", "run 3", "mean"]
    assert rows[1][0] == "attention as in Exercise 4"
    mine = rows[-2]
    assert mine[0].startswith("yours")
    assert (float(mine[-1]) <= 0.9) is (points == 4)
    assert rows[-1] == ["finish line", "", "", "", "0.90"]
