"""Read pages as learners do: go to the notebook, unfold Further, search, look up papers, follow the contents.

The site has three chapters and belongs to a fork: 06 has much of everything, 14 a table of codes, 18 ring attention.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import find_chapter
from lmcourse.site import frames as frames_module
from lmcourse.site.builder import build_site
from lmcourse.site.links import Links, bibtex, chapter_links
from tests.site.placeholders import stripes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.prove, pytest.mark.timeout(900)]  # the first test waits for the site

CHAPTERS = [find_chapter(number) for number in ("06", "14", "18")]
READ, TABLES, LAST = (f"{chapter.id}.html" for chapter in CHAPTERS)
FORK = "https://github.com/somebody/fork"
PHONE: Any = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def fork(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a course with another address."""
    root = tmp_path_factory.mktemp("fork")
    for chapter in CHAPTERS:
        for folder in ("solutions", "notebooks"):
            shutil.copytree(course / folder / chapter.id, root / folder / chapter.id)
    shutil.copy(course / "CITATION.cff", root)
    (root / "pyproject.toml").write_text(f'[project]\nurls.Repository = "{FORK}/"\n')
    return root


@pytest.fixture(scope="module")
def site(fork: Path) -> Path:
    """Its site, with placeholder figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "draw_frames", stripes)
        return build_site(fork, fork / "_site", CHAPTERS).folder


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The first chapter, as a new reader sees it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto((site / READ).as_uri())
    yield page
    context.close()


@pytest.fixture
def phone(browser: Browser, site: Path) -> Iterator[Page]:
    """The first chapter on a phone."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    page = context.new_page()
    page.goto((site / READ).as_uri())
    yield page
    context.close()


def test_a_page_leads_to_its_notebook_in_the_fork(site: Path, fork: Path) -> None:
    for chapter in CHAPTERS:
        files = ChapterFiles.of(chapter, fork)
        page = BeautifulSoup((site / f"{chapter.id}.html").read_text(encoding="utf-8"), "html.parser")
        notebook = f"notebooks/{chapter.id}/{files.release.name}"
        source = f"main/solutions/{chapter.id}/{files.source.name}"
        assert (site / notebook).read_bytes() == files.release.read_bytes()
        colab = f"https://colab.research.google.com/github/somebody/fork/blob/main/{notebook}"
        assert [link["href"] for link in page.select("p.open a")] == [notebook, colab, f"{FORK}/blob/main/{notebook}"]
        about = [link["href"] for link in page.select("article > section > .output > .about a")]
        assert about == [f"{FORK}/blob/{source}", f"{FORK}/edit/{source}", f"{FORK}/blob/main/LICENSE"]
        cells = {cell.id for cell in nbformat.read(files.release, as_version=4).cells}
        exercises = page.select("section.exercise")
        assert exercises
        for exercise in exercises:
            (link,) = exercise.select(".card-label a")
            address, _, cell = str(link["href"]).partition("#scrollTo=")
            assert address == colab
            assert cell in cells
            assert link.get_text().removesuffix(" in the notebook") == exercise.get_text().strip().partition(" ·")[0]


def test_without_a_repository_the_download_is_left(fork: Path) -> None:
    links = chapter_links(CHAPTERS[0], ChapterFiles.of(CHAPTERS[0], fork), fork)
    assert links.top().count("<a ") == 1
    assert f'<a href="{links.notebook}" download>' in links.top()
    assert f'href="{links.notebook}" download' in links.cell("rnn_probabilities", "Exercise 1")
    assert "<a " not in links.about()
    assert "MIT licence" in links.about()


def test_another_host_has_no_colab() -> None:
    links = Links("notebooks/a/b.ipynb", "solutions/a/b.py", "https://example.org/course")
    assert "colab" not in links.top()
    assert 'href="https://example.org/course/blob/main/notebooks/a/b.ipynb"' in links.top()


def test_a_chapter_is_cited_as_bibtex(fork: Path) -> None:
    links = chapter_links(CHAPTERS[0], ChapterFiles.of(CHAPTERS[0], fork), fork, FORK, "https://example.org")
    assert links.bibtex.startswith("@misc{lmcourse-06,\n  author = {{the lmcourse authors}},\n")
    assert "  title = {{Transformers, by hand}},\n  note = {Chapter 06, Recurrence and attention. Ver" in links.bibtex
    assert f"  url = {{https://example.org/{READ}}},\n}}" in links.bibtex
    said = {"title": "T", "version": 1, "date-released": "2027-01-02"}
    people = [{"family-names": "Doe", "given-names": "Jo"}, {"name": "Us"}]
    entry = bibtex(said | {"authors": people}, CHAPTERS[0], "")
    assert "author = {Doe, Jo and {Us}}," in entry
    assert "year = {2027}," in entry
    assert "url" not in entry


def test_further_opens_for_a_link_into_it(page: Page, site: Path) -> None:
    inside = page.locator("details.further section.exercise h3").last
    assert not inside.is_visible()
    assert "79 min · 5 exercises · 14 points" in page.locator("details.further summary").first.inner_text()
    page.locator(".page-toc a").filter(has_text="Exercise 11").click()
    inside.wait_for(state="visible")
    assert 0 <= inside.bounding_box()["y"] < 400  # type: ignore[index]
    page.reload()
    assert inside.is_visible(), "the reader finds Further as it was"
    page.locator("details.further > summary").click()
    page.goto("about:blank")
    page.goto((site / READ).as_uri() + "#how-cold-12-min")
    page.goto((site / READ).as_uri() + "#exercise-8-through-time")
    assert page.locator("#exercise-8-through-time").is_visible()


def test_further_opens_for_paper_and_closes_again(page: Page) -> None:
    inside = page.locator("details.further section.exercise").last
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert inside.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not inside.is_visible()


def search(page: Page, site: Path, question: str) -> list[str]:
    page.goto((site / "search.html").as_uri())
    page.locator("form.search input[name=q]").fill(question)
    return page.locator(".found li").all_inner_texts()


def test_search_finds_an_exercise_in_further_and_opens_it(page: Page, site: Path) -> None:
    first = search(page, site, "ring attention")[0]
    assert first.startswith("Exercise 10 · Ring attention in 18 · Parallelism, ")
    page.locator(".found a").first.click()
    page.wait_for_url("**/18-parallelism.html#*")
    page.locator(":target h3").wait_for(state="visible")
    assert page.locator(":target h3").bounding_box()["y"] < 400  # type: ignore[index]


def test_search_finds_figures_with_their_section(page: Page, site: Path) -> None:
    found = search(page, site, "step of the decoder")
    figures = [text for text in found if text.startswith("Figure: ")]
    assert figures
    page.locator(".found li").nth(found.index(figures[0])).locator("a").click()
    figure = page.locator("figure:target")
    figure.wait_for(state="visible")
    heading = figure.evaluate("figure => figure.closest('section').firstElementChild.firstChild.textContent")
    assert f", {' '.join(heading.split())}" in figures[0]


def test_a_citation_shows_its_paper_to_pointers_and_keys(page: Page) -> None:
    card, link = page.locator("#paper"), page.locator("a.cite").first
    link.hover()
    assert card.inner_text().split("\n") == ["Finding structure in time", "Elman, 1990"]
    page.keyboard.press("Escape")
    assert not card.is_visible()
    page.mouse.move(0, 0)
    link.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert card.is_visible()
    assert link.get_attribute("aria-describedby") == "paper"


def test_the_first_tap_shows_a_paper_and_stays(phone: Page) -> None:
    card, address = phone.locator("#paper"), phone.url
    for link in phone.locator("section:not(#further *) > p a.cite").all()[:5]:
        link.tap()
        assert card.is_visible()
        box = card.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        assert card.locator("a").get_attribute("href") == link.get_attribute("href")
    assert phone.url == address
    phone.locator("article h1").tap()
    assert not card.is_visible()


def test_the_contents_mark_the_section_in_view(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 600})
    page.wait_for_function("document.querySelector('.bd-sidebar-secondary').getBoundingClientRect().bottom === 600")
    for name in ("when-the-teacher-leaves", "one-state-for-everything", "what-is-attention-for"):
        # Into the middle of the section: no heading passes the top of the window.
        page.evaluate(
            "id => scrollTo(0, document.getElementById(id).getBoundingClientRect().top + scrollY + 150)", name
        )
        page.wait_for_function(
            "name => document.querySelector('.page-toc [aria-current]')?.hash === '#' + name", arg=name
        )
        assert page.locator(".page-toc a.active").count() == 1
    page.locator("#further").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.bd-sidebar-secondary').scrollTop > 50")


def test_the_contents_on_a_phone_lead_into_further_and_close(phone: Page) -> None:
    phone.locator(".secondary-toggle").tap()
    phone.locator("dialog a").filter(has_text="Exercise 9").tap()
    heading = phone.locator("#exercise-9-what-is-left-of-a-gradient h3")
    heading.wait_for(state="visible")
    phone.wait_for_function("!document.querySelector('dialog[open]')")
    phone.wait_for_function("document.querySelector(':target h3').getBoundingClientRect().top < 200")
    assert heading.bounding_box()["y"] > 40, "below the page's bar"  # type: ignore[index]


def test_words_of_code_in_a_table_are_not_broken(phone: Page, site: Path) -> None:
    phone.goto((site / TABLES).as_uri())
    broken = "all => all.filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
    codes = phone.locator("td code")
    assert "mixed-16-bit-gradients" in codes.nth(2).inner_text()
    assert codes.evaluate_all(broken) == []


def test_colours_of_figures_stay_in_the_dark(phone: Page, tmp_path: Path) -> None:
    image = phone.locator(".picture > img").first
    colours = {"yellow": (240, 228, 66), "white": (255, 255, 255), "black": (0, 0, 0), "blue": (0, 114, 178)}
    shown = {}
    for name, colour in colours.items():
        image.evaluate(
            """async (image, [r, g, b]) => {
                image.src = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90">`
                    + `<rect width="90" height="90" fill="rgb(${r},${g},${b})"/></svg>`;
                await image.decode();
            }""",
            list(colour),
        )
        image.screenshot(path=tmp_path / "one.png")
        picture = Image.open(tmp_path / "one.png").convert("RGB")
        shown[name] = picture.getpixel((picture.height // 2, picture.height // 2))  # it stands on the left
    red, green, blue = shown["yellow"]
    assert min(red, green) > 110 > 60 > blue, shown
    assert max(shown["white"]) < 40
    assert min(shown["black"]) > 220
    assert shown["blue"][2] > 200 > 100 > shown["blue"][0]
