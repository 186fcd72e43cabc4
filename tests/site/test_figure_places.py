"""Figures on a page, in Chromium: they keep their place while controls move, and fingers and keys reach all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from lmcourse.site.blocks import FRAMES
from lmcourse.site.explorables import Explorable
from lmcourse.site.figure_calls import find_figure
from lmcourse.site.frames import Picture
from tests.site.sheet import write_sheet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.prove

CALL = "explore(figures.timing_spread, runs=(5, 60), disturbed=[0.0, 0.3], warm_up_counts=False)"
IMPORTS = "from lmcourse.chapters.gpu_timing import figures"
WIDTHS = pytest.mark.parametrize("width", [390, 1280])


@pytest.fixture(scope="module")
def figure() -> Explorable:
    """A figure with a slider, buttons and a check box."""
    found = find_figure(CALL, IMPORTS)
    assert found is not None
    return Explorable(found)


@pytest.fixture
def open_page(figure: Explorable, browser: Browser, tmp_path: Path) -> Iterator[Callable[[int], Page]]:
    """A function that opens a page with the figure, in which each second setting is taller and says more."""
    (tmp_path / FRAMES).mkdir()
    pictures = {}
    for number, frame in enumerate(figure.frames.values()):
        name, height = f"{number}.png", 400 + 80 * (number % 2)
        Image.new("RGB", (800, height), "white").save(tmp_path / FRAMES / name)
        pictures[frame] = Picture(name, "bars", 800, height, "What to see. " * (1 + 20 * (number % 2)))
    tabs = []

    def at(width: int) -> Page:
        body = f"<h1>Spread</h1>{figure.html(pictures, 'spread')}<p id='below'>Below.</p>"
        tabs.append(browser.new_page(viewport={"width": width, "height": 800}))
        tabs[-1].goto(write_sheet(tmp_path, body, "figures.js"))
        return tabs[-1]

    yield at
    for tab in tabs:
        tab.close()


@WIDTHS
def test_no_setting_moves_the_text_below(open_page: Callable[[int], Page], width: int) -> None:
    page = open_page(width)
    below, files = set(), set()
    for control in page.locator("[data-place]").all():
        control.focus()
        page.keyboard.press("Space" if control.get_attribute("type") == "checkbox" else "ArrowRight")
        page.locator("figure img").evaluate("image => image.decode()")
        files.add(page.locator("figure img").evaluate("image => image.naturalHeight"))
        below.add(page.locator("#below").evaluate("one => one.getBoundingClientRect().top + scrollY"))
    assert files == {400, 480}
    assert len(below) == 1


def test_settings_with_one_description_say_their_values(open_page: Callable[[int], Page]) -> None:
    page = open_page(1280)
    assert page.locator("figure img").get_attribute("alt") == "bars; runs 20; disturbed 0; warm up counts off"
    page.get_by_label("warm up counts").check()
    assert page.locator(".spoken").text_content() == "bars; runs 20; disturbed 0; warm up counts on"


def test_a_finger_meets_every_control(open_page: Callable[[int], Page]) -> None:
    page = open_page(390)
    sizes = page.locator("figure :is([type=range], label:has(input), a, button)").evaluate_all(
        "all => all.map(one => [one.tagName, one.textContent, one.getBoundingClientRect().height])"
    )
    assert {tag for tag, _, _ in sizes} == {"INPUT", "LABEL", "A", "BUTTON"}
    assert [(tag, words) for tag, words, height in sizes if height < 24] == []


def test_a_touch_or_a_key_enlarges_a_picture_on_a_phone(open_page: Callable[[int], Page]) -> None:
    page = open_page(390)
    picture = page.locator(".picture")
    page.get_by_role("button", name="tap to enlarge").focus()
    page.keyboard.press("Enter")
    assert picture.evaluate("box => box.scrollWidth") >= 600
    page.get_by_role("button", name="tap to see all of it").press("Enter")
    assert picture.evaluate("box => box.scrollWidth") <= 390
    picture.click()
    assert picture.evaluate("box => box.scrollWidth") >= 600
