"""A prediction of a number on a page, in Chromium: it answers by keyboard, as the notebook does, and is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lmcourse.exercises.prediction import NumberPrediction
from lmcourse.site.blocks import prediction_html
from lmcourse.widgets.number_scale import NumberScale
from tests.site.sheet import write_sheet
from tests.widgets.test_number_scale import DECADES, NATS, NONE, SHARE, SIGNED, STEPS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.prove

GUESSES = {
    STEPS: (
        "160",
        "176",
        "177",
        "96 steps",
        "~53",
        "12,5",
        "0,125",
        "−0",
        "301",
        "ten",
        "",
        "1.2.3",
        "1e2",
        "5 layers",
    ),
    SIGNED: ("−0,5", "0.1", "0", "-0.2", "2"),
    SHARE: ("95", "72 %", "40 % of the time"),
    NONE: ("0", "5", "1e-8", "100"),
    DECADES: ("12,345", "1,500", "1e9", "12 345 678", "800", "1,2"),
    NATS: ("1,500", ".5"),
}


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page with a prediction for each scale."""
    asked = [NumberPrediction("", f"{scale}?", because="Because.", **asdict(scale)) for scale in GUESSES]
    tab = browser.new_page()
    tab.goto(write_sheet(tmp_path, "".join(map(prediction_html, asked)), "site.js"))
    yield tab
    tab.close()


def verdict(box: Locator) -> str:
    return box.get_by_role("status").inner_text()


@pytest.mark.parametrize("scale", GUESSES, ids=str)
def test_the_page_reads_and_judges_a_guess_as_the_notebook_does(page: Page, scale: NumberScale) -> None:
    for typed in GUESSES[scale]:
        box = page.locator(".prediction").nth(list(GUESSES).index(scale))
        box.get_by_role("textbox").fill(typed)
        box.get_by_role("button").click()
        guess = scale.read(typed)
        assert verdict(box) == (scale.help if guess is None else f"{scale.verdict(guess)} Because."), typed
        if guess is not None:
            assert box.evaluate("box => box.classList.contains('was-right')") == scale.is_close(guess)
            page.evaluate("localStorage.clear()")
            page.reload()


def test_a_guess_is_made_by_keyboard_and_remembered(page: Page) -> None:
    box = page.locator(".prediction").first
    slider, field = box.get_by_role("slider"), box.get_by_role("textbox")
    assert slider.get_attribute("aria-valuetext") == "nothing yet"
    slider.focus()
    page.keyboard.press("ArrowRight")
    stop = STEPS.labels[STEPS.start + 1]
    assert field.input_value() == stop
    assert slider.get_attribute("aria-valuetext") == f"{stop} steps"
    field.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("120")
    assert slider.input_value() == str(STEPS.nearest(120))
    page.keyboard.press("Enter")
    told = verdict(box)
    assert told.startswith("You guessed 120 steps, about 25 % too small. The answer: 160 steps.")
    page.reload()
    assert verdict(box) == told
    assert not field.is_editable()
    assert slider.is_disabled()


def test_axe_finds_no_fault_in_a_number_prediction(page: Page) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [node["html"] for fault in found for node in fault["nodes"] if ".prediction" in str(node["target"])] == []
