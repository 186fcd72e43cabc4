"""Links to figures with their settings, in Chromium: an address names a setting, and opening it shows the setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from docutils.nodes import make_id

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import CHAPTERS, Chapter, find_chapter
from lmcourse.site.explorables import Explorable, in_address, label
from lmcourse.site.frames import Frame, Picture
from lmcourse.site.pages import Page as SitePage
from tests.course.chapters import source
from tests.site.sheet import write_sheet
from tests.site.test_site import SET, STAND

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.prove

FOUND = "[...document.querySelectorAll('figure')].find(one => one.getBoundingClientRect().top > -1).id"
"""Browser code that returns the figure at the top of the window."""


def figures_of(number: str, course: Path) -> dict[str, Explorable]:
    """Return the figures of a chapter by the names that end their addresses."""
    chapter = find_chapter(number)
    page = SitePage(chapter, ChapterFiles.of(chapter, course), course)
    return {name: page.explorables[place] for place, name in page.names.items()}


@pytest.fixture(scope="module")
def address(course: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with the figures of 02, 14, 15 and 18, whose pictures are missing."""
    figures = {
        name: figure for number in ("15", "14", "18", "02") for name, figure in figures_of(number, course).items()
    }
    body = "".join(figure.html(drawn(figure), name) for name, figure in figures.items())
    style = "<style>figure { min-height: 100vh }</style>"
    return write_sheet(tmp_path_factory.mktemp("links"), style + body, "figures.js")


def drawn(figure: Explorable) -> Mapping[Frame, Picture]:
    return {frame: Picture(f"{setting}.webp", f"{setting}", 8, 4) for setting, frame in figure.frames.items()}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that may not write to the clipboard."""
    tab = browser.new_page()
    yield tab
    tab.close()


def shown(figure: Locator) -> tuple[str, dict[str, str]]:
    return figure.locator("img").get_attribute("alt") or "", figure.evaluate(STAND)


def test_an_address_restores_each_figure_and_scrolls_to_it(address: str, page: Page, browser: Browser) -> None:
    page.goto(address)
    other = browser.new_page()
    for figure in page.locator("figure").all():
        before = shown(figure)
        for place, index in before[1].items():
            figure.evaluate(SET, [place, 0 if index == "1" else 1])
        assert shown(figure) != before
        other.goto("about:blank")
        other.goto(address + str(figure.locator(".link").get_attribute("href")))
        assert other.evaluate(FOUND) == figure.get_attribute("id")
        assert shown(other.locator(f"id={figure.get_attribute('id')}")) == shown(figure)
    other.close()


def test_a_move_changes_the_address_without_a_new_entry(address: str, page: Page) -> None:
    page.goto(address)
    entries = page.evaluate("history.length")
    figure = page.locator("#memory-saved-tensors")
    figure.get_by_label("32 bits").check()
    page.wait_for_url("**/page.html#memory-saved-tensors?number=32_bits")
    figure.get_by_label("SwiGLU, 8/3 d").check()
    page.wait_for_url("**/page.html#memory-saved-tensors?number=32_bits&feed_forward=SwiGLU,_8/3_d")
    assert page.evaluate("history.length") == entries


def test_a_reload_keeps_the_setting_and_the_place(address: str, page: Page) -> None:
    page.goto(f"{address}#memory-budget?card=h200")
    page.evaluate("scrollTo(0, 500)")
    page.reload()
    assert shown(page.locator("#memory-budget"))[1]["1"] == "4"
    assert page.evaluate("scrollY") == 500


@pytest.mark.parametrize(
    "said", ["card=h200&model=gpt-9", "card=h200&colour=red", "&&=&%zz&card=h200", "card=%E0%A4&zero=nine"]
)
def test_unknown_names_and_values_are_left_out(address: str, page: Page, said: str) -> None:
    errors: list[Any] = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(address)
    figure = page.locator("#memory-budget")
    default = shown(figure)[1]
    page.goto(f"{address}#memory-budget?{said}")  # the page is open already
    page.wait_for_function(f"{FOUND} === 'memory-budget'")
    assert shown(figure)[1] == default | ({"1": "4"} if "h200" in said else {})
    assert errors == []


def test_a_setting_that_is_not_drawn_gives_the_nearest(address: str, page: Page) -> None:
    page.goto(f"{address}#memory-budget?batch=4&length=512&copies=16")
    stand = shown(page.locator("#memory-budget"))[1]
    assert stand["8"] == "3", "the last of the controls stands as asked"
    assert stand["3"] + stand["4"] != "10"


def test_a_link_is_copied_or_left_in_the_address(address: str, browser: Browser) -> None:
    for may_copy in (True, False):
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"{address}#memory-budget?card=h200")
        link = page.get_by_role("link", name="copy link").last
        if not may_copy:
            page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        link = page.locator("#memory-budget .link")
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.textContent !== 'copy link'")
        assert link.text_content() == ("copied ✓" if may_copy else "it is in the address line")
        assert page.url == f"{address}#memory-budget?card=h200"
        if may_copy:
            assert page.evaluate("navigator.clipboard.readText()") == page.url
        page.keyboard.press("Tab")
        assert link.text_content() == "copy link"
        context.close()


def test_without_scripts_a_figure_has_a_link_of_its_own(address: str, browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    page.locator("#memory-budget .link").click()
    assert page.url == f"{address}#memory-budget"
    page.close()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_names_in_addresses_are_not_ambiguous(chapter: Chapter, course: Path) -> None:
    figures = figures_of(chapter.number, course)
    titles = [line.lstrip("# ") for cell in source(chapter).cells for line in cell.text.splitlines() if line[:1] == "#"]
    assert figures.keys().isdisjoint(map(make_id, titles))
    for figure in figures.values():
        for stops in figure.stops:
            for names in (list(map(in_address, stops.values)), list(map(label, stops.values))):
                assert len(set(names)) == len(names), names
