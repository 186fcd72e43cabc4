"""A learner who restarts the kernel, or interrupts a check, reads one line and keeps the saved points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from lmcourse.report import REPORT_MIME, check_id
from tests.browser.driver import Notebook, solution_of, start_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

PATH = "01-floating-point/floating_point.ipynb"
EXERCISE, CHECK = "tensor_bytes", check_id("tensor_bytes")
ENDLESS = "def tensor_bytes(shape, dtype):\n    while True:\n        pass\n"


@pytest.fixture(scope="module")
def notebook(chromium: str, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A notebook with the first cell, a prediction and an exercise, which is solved and saved; the kernel is new."""
    with start_lab(tmp_path_factory.mktemp("lab")) as lab:
        notebook = Notebook.open(browser.new_page(viewport={"width": 1400, "height": 1000}), lab, PATH)
        code = [cell for cell in notebook.cells() if cell["cell_type"] == "code"]
        prediction = next(cell["id"] for cell in code if cell["source"].startswith("predict("))
        notebook.keep([code[0]["id"], prediction, EXERCISE, CHECK])
        notebook.write(EXERCISE, solution_of(EXERCISE))
        notebook.run_all()
        notebook.save()
        notebook.run_script("await panel.sessionContext.session.kernel.restart();")
        yield notebook
        notebook.page.close()


def outputs(notebook: Notebook, cell: str) -> list[Any]:
    """Return the outputs of a cell: an error's lines, or the points of a report."""
    found = notebook.cell(cell)["outputs"]
    return [one.get("traceback") or one["data"][REPORT_MIME]["points"] for one in found]


def test_a_cell_after_a_restart_asks_for_the_first_cell(notebook: Notebook) -> None:
    _, prediction, *_ = notebook.cells()
    for cell, name, points in ((prediction["id"], "predict", []), (CHECK, "check", [2])):
        notebook.run(cell)
        line = f"Run the first cell (Run › Run All Above Selected Cell): `{name}` is not defined in this kernel yet."
        assert outputs(notebook, cell) == [*points, [line]]


def test_a_button_below_the_line_runs_the_cells_above(notebook: Notebook) -> None:
    _, prediction, *_ = notebook.cells()
    notebook.select(prediction["id"]).get_by_role("button", name="Run all cells up to here").click()
    notebook.select(prediction["id"]).locator(".widget-button").first.wait_for()
    assert [cell["execution_count"] for cell in notebook.cells()[:2]] == [3, 4]


def test_a_check_that_takes_long_can_be_stopped(notebook: Notebook) -> None:
    notebook.write(EXERCISE, ENDLESS)
    notebook.run(EXERCISE)
    cell = notebook.select(CHECK)
    notebook.run_script("app.commands.execute('notebook:run-cell');")
    cell.get_by_role("note").filter(has_text="waits about 10 s for the first case").wait_for()
    cell.get_by_role("button", name="Stop the check now").click()
    cell.get_by_text("was interrupted").wait_for()
    *points, [line] = outputs(notebook, CHECK)
    assert (points, line[:52]) == ([2], "The check of `tensor_bytes` was interrupted in line ")
    assert cell.get_by_role("note").count() == 0


def test_a_check_that_ends_soon_says_nothing_of_its_time(notebook: Notebook) -> None:
    notebook.write(EXERCISE, solution_of(EXERCISE))
    notebook.run(EXERCISE)
    notebook.run(CHECK)
    notebook.page.wait_for_timeout(6000)
    assert outputs(notebook, CHECK) == [2]
    assert notebook.select(CHECK).get_by_role("note").count() == 0
