"""Pages are light, and look as they did before."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lmcourse.site.weight import STYLES, lighten, trim, words_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MOST = 30_000
"""Largest number of bytes of the style sheet, compressed."""


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        ("p { color: red } .modal { color: red }", "p{color: red;}"),
        ("p, .modal, .card { color: red }", "p, .card{color: red;}"),
        (".card:hover p::before, .card .modal { color: red }", ".card:hover p::before{color: red;}"),
        (".card:not(.modal) { color: red }", ".card:not(.modal){color: red;}"),
        (
            "@media print { p { color: red } .modal { color: red } .card { color: blue } }",
            "@media print {p{color: red;}.card{color: blue;}}",
        ),
        ("@media print { .modal { color: red } }", ""),
        ("p { --a: 1; --b: var(--a); --c: 2; width: var(--c) }", "p{--c: 2;width: var(--c);}"),
        ("#top { color: red } #other { color: red }", "#top{color: red;}"),
        ("@font-face { font-family: x }", "@font-face { font-family: x }"),
    ],
)
def test_rules_of_elements_that_no_page_has_go(css: str, kept: str) -> None:
    assert trim(css, words_of('<p class="card big" id="top">', {})).strip() == kept


def test_a_script_adds_no_classes_of_absent_components() -> None:
    page = '<button data-bs-toggle="tooltip">'
    words = words_of(page, {"site.js": 'add("was-right")', "x/bootstrap.js": 'add("tooltip-inner", "carousel-item")'})
    assert {"was-right", "tooltip-inner", "show"} < words
    assert "carousel-item" not in words


@pytest.fixture(scope="module")
def light(heavy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lightened(heavy, tmp_path_factory.mktemp("light"))


def lightened(heavy: Path, folder: Path) -> Path:
    """Return a light copy of a site."""
    copy = Path(shutil.copytree(heavy, folder / "light"))
    lighten(copy)
    return copy


@pytest.mark.prove
def test_the_first_view_waits_for_one_small_style_sheet(light: Path) -> None:
    assert len(gzip.compress((light / "_static" / STYLES).read_bytes())) < MOST
    for path in light.glob("*.html"):
        head = path.read_text(encoding="utf-8").partition("</head>")[0]
        assert len(re.findall(r'rel="stylesheet"', head)) == 1
        assert re.findall(r'<script src=|rel="preload"', head) == []


@pytest.mark.prove
@pytest.mark.parametrize("name", ["search.html", "index.html"])
@pytest.mark.parametrize("media", ["screen", "print"])
def test_every_element_looks_as_with_all_rules(
    browser: Browser, heavy: Path, light: Path, name: str, media: str
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    before, after = (looks(page, site / name, media) for site in (heavy, light))
    page.close()
    assert len(before) > 200
    assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == []


def looks(page: Page, path: Path, media: str) -> list[str]:
    """Return the style of every element of a page, and of what stands before and after it."""
    page.emulate_media(media="print" if media == "print" else "screen")
    page.goto(path.as_uri(), wait_until="networkidle")
    found: list[str] = page.evaluate(LOOKS)
    return found


LOOKS = """() => [...document.querySelectorAll("body *")].flatMap((one) => ["", "::before", "::after"].map((part) => {
  const style = getComputedStyle(one, part);
  const names = ["display", "position", "margin", "padding", "color", "background", "font", "border", "width", "height",
    "opacity", "visibility", "content", "overflow", "flex", "transform", "z-index", "box-shadow", "text-decoration"];
  return [one.tagName, one.className, part, ...names.map((name) => style.getPropertyValue(name))].join(" | ");
}))"""
