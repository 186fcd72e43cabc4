"""Build the site once, read its files, and open its pages from the disk in a real browser.

The loaded bytes are measured for every chapter, and every setting that a text asks for is tried. The pages of two
chapters are read and used: 06 has a core and Further, and outputs with times; 19 has sliders,
radio buttons, check boxes and lists.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import CHAPTERS, Chapter, find_chapter
from lmcourse.course.parts import TOTALS
from lmcourse.exercises.prediction import find_prediction
from lmcourse.site import frames as frames_module
from lmcourse.site import front
from lmcourse.site.builder import CACHE, build_site
from lmcourse.site.explorables import Explorable
from lmcourse.site.figure_calls import WIDGET_FIGURES, find_figure, imports_of
from lmcourse.site.formulas import NODE
from lmcourse.site.frames import Frame, Picture
from lmcourse.site.front import front_page
from lmcourse.site.links import chapter_links
from lmcourse.site.pages import Page as SitePage
from tests.course.chapters import code, prose
from tests.course.chapters import source as source_of
from tests.site.asked import ALL, ASKED
from tests.site.placeholders import stripes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1200)]  # the first test waits for the site of all chapters

USED = ("06", "19")
PAGES = ("index.html", "06-recurrence-and-attention.html", "19-gpu-timing.html", "search.html")
READ = PAGES[:3]
LIMIT = 1_500_000
"""Largest number of uncompressed bytes that a browser loads for a chapter before any figure."""
DESK: Any = {"width": 1280, "height": 720}


@pytest.fixture(scope="module")
def site(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of all chapters, with placeholder figures, because pages work the same with any pictures."""
    out = tmp_path_factory.mktemp("site") / "out"
    (course / CACHE).mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(front, "FIGURE", "soft_table")
        patch.setattr(frames_module, "draw_frames", partial(stripes, distinct=is_moved))
        return build_site(course, out, CHAPTERS).folder


def is_moved(frame: Frame) -> bool:
    topics = {find_chapter(number).topic for number in USED}
    return not topics.isdisjoint(frame.module.split("."))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    """The pages that the tests read."""
    return {name: BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser") for name in PAGES}


def test_the_site_has_only_its_pages(site: Path) -> None:
    chapters = {f"{chapter.id}.html" for chapter in CHAPTERS}
    assert {path.name for path in site.glob("*.html")} == {*PAGES, "reference.html", *chapters}
    assert {path.parent.name for path in site.rglob("*.ipynb")} == {chapter.id for chapter in CHAPTERS}
    assert not list(site.rglob("*.map")) + list(site.rglob("*.doctree"))


def test_links_and_files_exist(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    broken = []
    for name, page in pages.items():
        for tag in page.find_all(["a", "img", "script", "link"]):
            address = urlsplit(str(tag.get("href") or tag.get("src") or ""))
            if address.scheme in ("http", "https"):
                assert tag.name == "a", f"{name} loads {address.geturl()}"
            elif address.scheme == "" and (address.path or address.fragment):
                target = unquote(address.path) or name
                if not (site / target).is_file():
                    broken.append(f"{name}: {target}")
                elif address.fragment and target in pages and pages[target].find(id=unquote(address.fragment)) is None:
                    broken.append(f"{name}: {target}#{address.fragment}")
    assert broken == []


def test_each_frame_of_a_figure_exists(site: Path) -> None:
    folder = site / "_frames"
    text = "".join(path.read_text(encoding="utf-8") for path in site.glob("*.html"))
    assert set(re.findall(r"[0-9a-f]{20}\.webp", text)) == {path.name for path in folder.glob("*.webp")}


def test_pages_show_no_jupyter_or_nbval_markup(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        text = str(page)
        for word in ("widget-view", "vnd.lmcourse", "nbval", "BEGIN SOLUTION", "BEGIN HIDDEN", "(hidden=True"):
            assert word not in text, f"{name}: {word}"
        assert all(image.get("alt") for image in page.find_all("img")), name


def test_every_exercise_is_a_card(pages: dict[str, BeautifulSoup]) -> None:
    for number in USED:
        chapter = find_chapter(number)
        cards = pages[f"{chapter.id}.html"].select("section.exercise")
        assert len(cards) == {"06": 11, "19": 9}[number]
        for card in cards:
            (body,) = card.select(":scope > .exercise-body")
            assert body.select_one(".exercise-facts")
            assert "Your code here" in body.get_text() or "= None" in body.get_text()
            answer = body.select_one("details.answer")
            assert answer is not None
            assert not answer.has_attr("open")
            report = answer.select_one("section[role=status]")
            assert report is not None
            assert "all passed" in report.get_text()
            assert "hidden:" not in report.get_text()
        assert "Grading adds " in pages[f"{chapter.id}.html"].get_text()


def test_every_page_begins_with_the_totals_of_its_parts(site: Path) -> None:
    for chapter in CHAPTERS:
        totals = TOTALS.search(source_of(chapter).cells[0].text)
        assert totals
        text = BeautifulSoup((site / f"{chapter.id}.html").read_text(encoding="utf-8"), "html.parser").get_text()
        assert totals[0].replace("**", "") in text


def test_every_page_describes_itself(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    said = {name: str(page.find("meta", attrs={"name": "description"})) for name, page in pages.items()}
    assert len({said[name] for name in READ}) == len(READ)
    for chapter in CHAPTERS:
        text = (site / f"{chapter.id}.html").read_text(encoding="utf-8")
        assert re.search(r'<meta name="description" content="[^a-z]', text), chapter.id
    for page in pages.values():
        preview = page.find("meta", property="og:image")
        assert preview is not None
        assert (site / str(preview["content"])).is_file()
        assert "not set" not in page.get_text()


def test_captions_and_summaries_show_no_markup(site: Path) -> None:
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        lines = [line for _, line in re.findall(r"<(figcaption|summary)\b[^>]*>(.*?)</\1>", text, re.DOTALL)]
        assert [line for line in lines if re.search("[$`]", line)] == [], path.name


def test_reading_lists_link_to_papers_and_checks_are_left_out(pages: dict[str, BeautifulSoup]) -> None:
    page = pages[READ[1]]
    links = {
        " ".join(link.get_text().split()): link["href"] for link in page.find_all("a", href=re.compile("^https://"))
    }
    assert links["Sharp nearby, fuzzy far away"] == "https://arxiv.org/abs/1805.04623"
    assert links["Finding structure in time"] == "https://doi.org/10.1207/s15516709cog1402_1"
    assert all("is built" not in page.get_text() for page in pages.values())


def test_outputs_that_depend_on_time_are_not_shown(pages: dict[str, BeautifulSoup]) -> None:
    assert "Measured times: run the notebook" in pages["19-gpu-timing.html"].get_text()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_every_figure_with_controls_is_interactive_if_possible(chapter: Chapter, course: Path) -> None:
    cells = nbformat.read(ChapterFiles.of(chapter, course).solution, as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    imports = imports_of(sources)
    trees = [ast.parse(source) for source in sources]
    names = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    computed = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    for source, tree in zip(sources, trees, strict=True):
        last = tree.body[-1]
        call = last.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
        name = ast.unparse(call.func).rpartition(".")[2] if call else ""
        if call is None or not (name in WIDGET_FIGURES or (name == "explore" and call.keywords)):
            continue
        found = find_figure(source, imports)
        if found is None:
            assert {node.id for node in ast.walk(call) if isinstance(node, ast.Name)} & computed, source
        else:
            explorable = Explorable(found)
            assert len(explorable.frames) > 1, source
            assert len({frame.key for frame in explorable.frames.values()}) == len(explorable.frames), source


def test_a_site_of_two_chapters_links_to_no_other(course: Path, tmp_path: Path) -> None:
    chapters = [find_chapter("06"), find_chapter("19")]
    ids = {chapter.id for chapter in chapters}
    pages = [SitePage(chapter, ChapterFiles.of(chapter, course), tmp_path) for chapter in chapters]
    drawn = {frame: Picture("one.webp", "A description.", 8, 4) for page in pages for frame in page.frames}
    front = front_page(pages, drawn)
    assert set(re.findall(r'href="([^"#]+)\.html"', front)) == ids
    assert re.search(r'<p class="minutes">\d+ minutes · Further \d+ minutes</p>', front)
    assert "[the course's repository](https://example.org)" in front_page(pages, drawn, "https://example.org")
    assert front.count('class="absent"') == len(CHAPTERS) - 2
    assert '<figure class="explorable"' in front, "the first one, as that of notebook 08 is not there"
    assert any("](../" in source for source in pages[1].released.values()), "a link to the course's own text"
    links = chapter_links(chapters[1], pages[1].files, course)
    assert "](../" not in pages[1].for_sphinx(drawn, frozenset(ids), links)


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    """The browser tab of all tests, whose process has already compiled the scripts."""
    return browser.new_page(viewport=DESK)


@pytest.fixture
def page(tab: Page, complaints: list[str]) -> Iterator[Page]:
    """An empty page without data from earlier tests."""
    listeners: dict[Any, Callable[[Any], object]] = {
        "console": lambda message: message.type in ("error", "warning") and complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        # a page that is left before its icon has come aborts the request
        "requestfailed": lambda request: request.failure == "net::ERR_ABORTED" or complaints.append(request.url),
        "request": lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield tab
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    if tab.url.startswith("file:"):
        tab.evaluate("localStorage.clear()")
    tab.goto("about:blank")
    tab.set_viewport_size(DESK)
    tab.emulate_media(color_scheme="null", reduced_motion="null")


def test_the_first_view_of_every_chapter_is_small(site: Path, page: Page) -> None:
    weights = {name: first_view(site, page, name) for name in (*(c.id for c in CHAPTERS), "index")}
    assert {name: weight for name, weight in weights.items() if weight >= LIMIT} == {}
    assert min(weights.values()) > 0.2 * LIMIT, "with styles, scripts and the fonts of formulas"


def first_view(site: Path, page: Page, name: str) -> int:
    """Return the bytes of all files except pictures that a page loads by itself, each counted once."""
    addresses: set[str] = set()

    def listen(request: Request) -> None:
        addresses.add(request.url)

    page.on("request", listen)
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate("document.fonts.ready.then(() => null)")
    page.remove_listener("request", listen)
    files = [site / unquote(urlsplit(address).path) for address in addresses if address.startswith("file:")]
    return sum(file.stat().st_size for file in files if file.suffix != ".webp")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_the_disk_without_requests(site: Path, page: Page, complaints: list[str], name: str) -> None:
    page.goto((site / name).as_uri())
    if name in READ[1:]:
        page.locator(".katex").nth(10).wait_for(state="attached")
        assert page.locator(".katex-error").count() == 0
    assert complaints == []


def open_unfolded(page: Page, address: Path, width: int = 1280) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address.as_uri())
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")


def move(page: Page, control: Any) -> None:
    """Move a control with the keyboard to another value."""
    control.focus()
    kind = control.get_attribute("type")
    if kind == "checkbox":
        page.keyboard.press("Space")
    elif kind == "radio":
        page.keyboard.press("ArrowRight")
    elif kind == "range":
        at_the_end = control.input_value() == control.get_attribute("max")
        page.keyboard.press("ArrowLeft" if at_the_end else "ArrowRight")
    else:
        last = control.locator("option").count() - 1
        page.keyboard.press("ArrowUp" if control.input_value() == str(last) else "ArrowDown")


@pytest.mark.parametrize("name", READ)
def test_each_figure_answers_to_each_of_its_controls(site: Path, page: Page, complaints: list[str], name: str) -> None:
    from playwright.sync_api import expect

    open_unfolded(page, site / name)
    assert page.locator("figure.explorable").count()
    for figure in page.locator("figure.explorable").all():
        image, spoken = figure.locator("img"), figure.locator(".spoken")
        for control in figure.locator("select, input:not([type=radio]), input[type=radio]:checked").all():
            before = image.get_attribute("src")
            move(page, control)
            expect(image).not_to_have_attribute("src", str(before))
            after = image.get_attribute("src")
            assert (site / str(after)).read_bytes() != (site / str(before)).read_bytes()
            assert spoken.text_content() == image.get_attribute("alt")
            assert figure.locator(".caption").text_content()
            assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    assert complaints == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_a_page_shows_the_settings_that_the_text_asks_for(
    site: Path, page: Page, course: Path, chapter: Chapter, tmp_path: Path
) -> None:
    read = SitePage(chapter, ChapterFiles.of(chapter, course), tmp_path)
    named: dict[str, tuple[int, Explorable]] = {}
    for place, explorable in enumerate(read.explorables.values()):
        count = 1 + sum(name.split()[0] == explorable.function for name in named)
        named[explorable.function + (f" {count}" if count > 1 else "")] = place, explorable
    page.goto((site / f"{chapter.id}.html").as_uri(), wait_until="domcontentloaded")
    for name, sentence, asked in ASKED.get(chapter.number, ()):
        assert sentence in text_of(chapter), sentence
        place, explorable = named[name]
        figure = page.locator("figure.explorable").nth(place)
        for setting in asked:
            held: dict[str, str] = {}
            for control, value in setting.items():
                (at,) = (i for i, stops in enumerate(explorable.stops) if stops.name == control)
                values = explorable.stops[at].values
                for index in range(len(values)) if value is ALL else [values.index(value)]:
                    held[str(at)] = str(index)
                    figure.evaluate(SET, [at, index])
                    assert figure.evaluate(STAND) | held == figure.evaluate(STAND), (sentence, setting, values[index])


SET = """(figure, [at, index]) => {
  const inputs = [...figure.querySelectorAll(`[data-place="${at}"]`)];
  const input = inputs.find((one) => one.type !== "radio" || one.value === String(index));
  if (input.type === "radio" || input.type === "checkbox") input.checked = input.type === "radio" || index === 1;
  else input.value = String(index);
  input.dispatchEvent(new Event("input", { bubbles: true }));
}"""
STAND = """(figure) => Object.fromEntries([...figure.querySelectorAll("[data-place]")]
  .filter((one) => one.type !== "radio" || one.checked)
  .map((one) => [one.dataset.place, one.type === "checkbox" ? String(Number(one.checked)) : one.value]))"""
"""Browser code that sets a control of a figure to a value by index, and reads the indices of all its controls."""


def text_of(chapter: Chapter) -> str:
    """Return the Markdown of a chapter and the answers to its predictions, without line breaks."""
    because = [
        find_prediction(name).because for name in re.findall(r'^predict\("(\w+)"\)$', code(chapter), re.MULTILINE)
    ]
    return " ".join([prose(chapter).replace("\n", " "), *because])


def test_a_slider_announces_its_value(site: Path, page: Page) -> None:
    page.goto((site / READ[2]).as_uri())
    for slider in page.locator("figure.explorable input[type=range]").all():
        move(page, slider)
        said = slider.get_attribute("aria-valuetext")
        assert said == json.loads(str(slider.get_attribute("data-values")))[int(slider.input_value())]
        assert slider.locator("xpath=../output").text_content() == said


def test_icons_come_from_the_font_and_not_from_a_script(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("document.fonts.load('900 16px \"Font Awesome 7 Free\"').then(fonts => fonts.length)") == 1
    drawn = "all => all.filter(one => getComputedStyle(one, '::before').content !== 'none').length"
    assert page.locator("[class*=fa-solid]").evaluate_all(drawn) > 5
    assert (site / "_static" / "scripts" / "fontawesome.js").stat().st_size < 200


def test_a_prediction_accepts_one_answer_and_stores_it(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    box = page.locator(".prediction")
    wrong = box.get_by_role("button", name="exactly 10")
    wrong.focus()
    page.keyboard.press("Enter")
    assert wrong.evaluate("element => element === document.activeElement && element.classList.contains('wrong')")
    assert box.locator("[role=status]").inner_text().startswith("You chose “exactly 10”. The answer: 4.0.")
    page.reload()
    box.get_by_role("button", name="4.0").click(force=True)  # the button is marked as disabled
    assert box.locator("[role=status]").inner_text().startswith("You chose “exactly 10”. The answer: 4.0.")
    page.evaluate("localStorage.clear()")
    page.reload()
    box.get_by_role("button", name="4.0").click()
    assert box.locator("[role=status]").inner_text().startswith("Yes.")


def test_a_printed_chapter_has_its_figures_and_no_menus(site: Path, page: Page) -> None:
    page.goto((site / READ[1]).as_uri(), wait_until="networkidle")
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth)")
    page.emulate_media(media="print")
    assert [
        name for name in (".bd-sidebar-primary", ".bd-header", "form") if page.locator(name).first.is_visible()
    ] == []
    assert page.locator("figure img").first.is_visible()
    page.emulate_media(media="screen")


def test_hints_open_one_after_the_other(site: Path, page: Page) -> None:
    page.goto((site / READ[1]).as_uri())
    card = page.locator(".exercise-body").first
    second = card.get_by_text(re.compile("^Hint 2 of"))
    assert not second.is_visible()
    card.get_by_text(re.compile("^Hint 1 of")).click()
    assert second.is_visible()


def test_search_lists_sections_with_the_text_around_a_word(site: Path, page: Page, complaints: list[str]) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("Control+k")
    page.keyboard.type("williams roofline")
    page.keyboard.press("Enter")
    first = page.locator(".found li").first
    assert "in 19 · GPU timing" in first.inner_text()
    assert {mark.lower() for mark in first.locator("mark").all_inner_texts()} <= {"williams", "roofline"}
    assert first.locator("mark").count()
    assert complaints == []


def test_search_finds_beginnings_of_words_and_phrases(site: Path, page: Page) -> None:
    page.goto((site / "search.html").as_uri())
    for typed, marked in (("end", "end"), ('"arithmetic intensity"', "arithmetic intensity")):
        page.locator("form.search input[name=q]").fill(typed)  # results come while one types
        marks = page.locator(".found li mark")
        assert marks.count()
        assert {text.lower() for text in marks.all_inner_texts()} == {marked}
        before = marks.evaluate_all("marks => marks.map(mark => mark.previousSibling?.textContent.at(-1) ?? ' ')")
        assert not [char for char in before if char.isalnum()]


def test_the_site_remembers_hints_position_and_read_chapters(site: Path, page: Page) -> None:
    chapter = (site / READ[1]).as_uri()
    page.goto(chapter)
    assert page.locator(".resume").count() == 0
    hint = page.locator("details.hint").first
    hint.locator("summary").first.click()
    hint.scroll_into_view_if_needed()
    page.goto((site / "index.html").as_uri())
    assert page.locator(".resume").inner_text().startswith("You were in 06 · Recurrence and attention, at Exercise 1 ·")
    assert page.locator(".read-mark").count() == 0
    page.locator(".resume a").click()
    page.locator("details.hint[open]").wait_for()
    page.locator(".prev-next-footer").scroll_into_view_if_needed()
    page.wait_for_function("JSON.parse(localStorage[`lmcourse: ${location.pathname.split('/').pop()}`] || '{}').read")
    page.goto((site / "index.html").as_uri())
    assert page.locator("ol.map .read-mark").count() == 1


@pytest.mark.skipif(not NODE and "CI" not in os.environ, reason="without Node.js a script renders the formulas")
def test_without_scripts_formulas_and_code_are_shown(site: Path, browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False, color_scheme="dark")
    page.goto((site / READ[1]).as_uri())
    assert page.locator(".math").count() == page.locator(".math > .katex, .math > .katex-display").count() > 100
    assert page.locator(".katex-html").first.is_visible()
    page.locator("html[data-theme=light]").wait_for()
    page.close()


CUT = """[...document.querySelectorAll('.bd-article pre .line:not(.printed, [style*=least])')]
    .filter(line => line.scrollWidth > line.closest('pre').clientWidth).map(line => line.textContent)"""
CUT_OFF = """all => all.filter(box => box.querySelector(".katex-html").getBoundingClientRect().left
    < box.getBoundingClientRect().left - 1).map(box => box.textContent)"""
BROKEN = """all => all.filter(one => {
    const parts = [...one.querySelectorAll('.katex-html > .base')].map(part => part.getBoundingClientRect());
    return parts.some((part, i) => i && part.left < parts[i - 1].left)
        && parts.reduce((sum, part) => sum + part.width, 0) < one.parentElement.clientWidth;
}).map(one => one.textContent)"""
"""Browser code that finds cut lines of code, formulas whose beginning cannot be scrolled to, and formulas that are
broken though they fit into a line."""


@pytest.mark.parametrize("name", [*READ, "reference.html"])
@pytest.mark.parametrize("width", [1440, 390])
def test_code_and_formulas_fit_the_width(site: Path, page: Page, name: str, width: int) -> None:
    open_unfolded(page, site / name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    assert page.locator("div.math").evaluate_all(CUT_OFF) == []
    assert page.locator("p > span.math").evaluate_all(BROKEN) == []


def test_what_is_wider_than_a_phone_scrolls_under_a_shadow(site: Path, page: Page) -> None:
    open_unfolded(page, site / READ[1], 390)
    found = page.locator(".bd-article :is(div.math, table, pre)").evaluate_all(WIDE)
    assert {tag for tag, _ in found} == {"DIV", "TABLE", "PRE"}
    assert {attached for _, attached in found} == {"local, scroll, scroll"}
    assert len(set(page.locator(".printed").evaluate_all("all => all.map(one => one.clientHeight)"))) == 1


WIDE = """all => all.filter(box => box.scrollWidth > box.clientWidth)
    .map(box => [box.tagName, getComputedStyle(box).backgroundAttachment])"""


def test_copied_code_has_its_lines_once(site: Path, page: Page) -> None:
    page.goto((site / READ[1]).as_uri())
    code = str(page.locator(".cell_input pre").nth(1).text_content())
    assert "\n\n\n\n" not in code
    ast.parse(code)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width"), [(READ[0], 1280), (READ[2], 1280), (READ[2], 390), ("reference.html", 390)])
def test_axe_finds_no_serious_fault(site: Path, page: Page, name: str, width: int, theme: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # Opened cells fade in, and half-faded text has half the contrast.
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    open_unfolded(page, site / name, width)
    page.locator(f"html[data-theme={theme}]").wait_for()
    for prediction in page.locator(".prediction").all()[:1]:
        prediction.get_by_role("button").first.click()
    assert page.evaluate("document.getAnimations().length") == 0
    found = Axe().run(page, options={"rules": {"target-size": {"enabled": True}}}).response["violations"]
    serious = [
        f"{fault['id']}: {node['html'][:120]} {node['failureSummary']}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert serious == []


def test_a_wide_screen_shows_large_figures_and_short_lines(site: Path, page: Page) -> None:
    open_unfolded(page, site / READ[2], 1920)
    widths = "all => all.map(one => one.getBoundingClientRect().width)"
    assert min(page.locator(".picture img").evaluate_all(widths)) > 900
    assert 500 < max(page.locator("section > p").evaluate_all(widths)) < 750


def test_a_formula_keeps_its_comma(pages: dict[str, BeautifulSoup]) -> None:
    formulas = [formula for page in pages.values() for formula in page.select("p span.math")]
    assert len(formulas) > 100
    assert [str(f) for f in formulas if re.match("[.,;:?!)”]", str(f.next_sibling or ""))] == []


def test_a_site_may_have_no_figure_with_controls(course: Path, tmp_path: Path) -> None:
    pages = [SitePage(find_chapter("20"), ChapterFiles.of(find_chapter("20"), course), tmp_path)]
    assert "Then move it" not in front_page(pages, {})
