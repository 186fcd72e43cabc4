"""Widgets after a reload, after a restart of the kernel, and the next morning.

The tests are steps with one notebook, in this order. It has one widget of each kind: a figure with controls, a
chapter's own widget, a prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.driver import Lab, Notebook, start_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.prove

PATH = "01-floating-point/floating_point.ipynb"
KINDS = FIGURE, OWN, PREDICTION = ("explore(figures.code_grid", "figures.BitExplorer(", "predict(")
RESTORED = 90_000
"""Largest time in milliseconds until JupyterLab has restored all widgets on a busy machine."""


@pytest.fixture(scope="module")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a fresh learner's copy."""
    with start_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="module")
def notebook(lab: Lab, browser: Browser) -> Iterator[Notebook]:
    """A notebook with one widget of each kind, run once."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    notebook = Notebook.open(page, lab, PATH)
    start = next(cell["id"] for cell in notebook.cells() if cell["cell_type"] == "code")
    notebook.keep([start, *(with_widget(notebook, kind) for kind in KINDS)])
    notebook.run_all()
    yield notebook
    page.close()


def with_widget(notebook: Notebook, kind: str) -> str:
    """Return the id of the first cell that shows a widget of this kind."""
    return next(str(cell["id"]) for cell in notebook.cells() if cell["source"].startswith(kind))


def verdict(notebook: Notebook) -> Locator:
    """Return the text below the buttons of the prediction."""
    found = notebook.select(with_widget(notebook, PREDICTION)).locator("[role=status]")
    found.wait_for(timeout=RESTORED)
    return found


def options_of(notebook: Notebook) -> Locator:
    """Return the buttons of the prediction."""
    return notebook.select(with_widget(notebook, PREDICTION)).locator(".widget-hbox .widget-button")


def test_a_prediction_is_made_by_keyboard_and_survives_a_reload(notebook: Notebook, lab: Lab) -> None:
    options = options_of(notebook)
    texts = options.all_inner_texts()
    for option in options.all():
        option.focus()
        notebook.page.keyboard.press("Enter")
        assert option.evaluate("element => element === document.activeElement")
    told = verdict(notebook).inner_text()
    assert told.startswith(("Yes.", f"You chose “{texts[0]}”. The answer: "))
    notebook.save()
    Notebook.open(notebook.page, lab, PATH)
    assert verdict(notebook).inner_text() == told


def test_controls_note_that_their_kernel_was_restarted(notebook: Notebook) -> None:
    shown = notebook.select(with_widget(notebook, FIGURE))
    shown.locator(".noUi-handle").wait_for(timeout=RESTORED)
    notebook.run_script("await panel.sessionContext.session.kernel.restart();")
    note = shown.locator(".lmcourse-still")
    note.wait_for()
    assert "Run the first cell" in note.inner_text()
    assert shown.locator(".jp-OutputArea-output > :not(.lmcourse-still)").first.evaluate("element => element.inert")


def test_every_widget_shows_its_saved_picture_when_reopened(notebook: Notebook, lab: Lab) -> None:
    notebook.save()
    notebook.run_script("await panel.sessionContext.shutdown();")
    Notebook.open(notebook.page, lab, PATH)
    for kind in KINDS:
        output = notebook.select(with_widget(notebook, kind)).locator(".lmcourse-saved")
        output.wait_for(timeout=RESTORED)
        assert "Run the first cell" in output.inner_text()
        assert "Error displaying widget" not in output.inner_text()
        if kind == PREDICTION:
            assert output.locator("li").count() >= 2
        else:
            output.locator("img[alt]").wait_for()  # the extension adds the alt text a moment later
    notebook.run_all()
    shown = notebook.select(with_widget(notebook, FIGURE))
    shown.locator(".noUi-handle").wait_for()
    assert shown.locator(".lmcourse-still").count() == 0


def test_a_new_kernel_remembers_the_prediction_until_it_is_made_again(notebook: Notebook) -> None:
    earlier = verdict(notebook).inner_text()
    first, second, *_ = options_of(notebook).all()
    notebook.panel.get_by_role("button", name="Answer again").press("Enter")
    notebook.page.wait_for_function("element => element === document.activeElement", arg=first.element_handle())
    second.press("Enter")
    later = verdict(notebook).inner_text()
    assert later != earlier
    notebook.run_script("await panel.sessionContext.session.kernel.restart();")
    notebook.run_all()
    assert verdict(notebook).inner_text() == later
