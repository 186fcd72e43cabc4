"""Print two chapters as a book with Chromium, and read the PDFs back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.site.book import BOOK, print_book
from lmcourse.site.weight import lighten
from tests.site.placeholders import TWO

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1200)]

ADDRESS = "https://example.org/course"


@pytest.fixture(scope="module")
def printed(chromium: str, heavy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with its PDFs."""
    folder = Path(shutil.copytree(heavy, tmp_path_factory.mktemp("book") / "site"))
    lighten(folder)
    page = folder / f"{TWO[0].id}.html"
    link = f'</h1><p><a href="{TWO[1].id}.html#further">Elsewhere.</a></p>'
    page.write_text(page.read_text(encoding="utf-8").replace("</h1>", link), encoding="utf-8")
    assert print_book(folder, TWO, ADDRESS) == len(PdfReader(folder / BOOK).pages)
    return folder


@pytest.fixture(scope="module")
def book(printed: Path) -> PdfReader:
    return PdfReader(printed / BOOK)


@pytest.fixture(scope="module")
def texts(book: PdfReader) -> list[str]:
    """The text of each page of the book."""
    return [page.extract_text() for page in book.pages]


def sections(book: PdfReader, outline: list[Any], depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """Yield the depth, title and page of each line of the outline."""
    for line in outline:
        if isinstance(line, list):
            yield from sections(book, line, depth + 1)
        else:
            page = book.get_destination_page_number(line)
            assert page is not None
            yield depth, str(line.title), page


def tight(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_every_page_has_its_number(book: PdfReader, texts: list[str]) -> None:
    numbers = [text.split()[0] for text in texts]
    start = book.page_labels.index("1")
    assert book.page_labels[:start] == ["i", "ii", "iii"][:start]
    assert numbers[1:] == book.page_labels[1:]
    assert book.page_labels[start:] == [str(number + 1) for number in range(len(book.pages) - start)]


def test_the_contents_name_the_page_of_every_section(book: PdfReader, texts: list[str]) -> None:
    start = book.page_labels.index("1")
    contents = tight("".join(texts[1:start]))
    lines = [line for line in sections(book, book.outline) if line[0] < 2 and line[2] >= start]
    assert len(lines) > 20
    for _, title, page in lines:
        assert tight(title) + book.page_labels[page] in contents
        assert tight(title) in tight(texts[page])


def test_chapters_begin_pages_and_contain_further_and_answers(book: PdfReader, texts: list[str]) -> None:
    lines = list(sections(book, book.outline))
    first = {title: page for depth, title, page in lines if depth == 0}
    for chapter in TWO:
        title = f"{chapter.number} · {chapter.title}"
        text = tight(texts[first[title]])
        assert text.startswith(book.page_labels[first[title]] + tight(title))
    for part in ("Further", "Answers"):
        assert [title for depth, title, _ in lines if depth == 1].count(part) == len(TWO)
    text = "".join(texts)
    assert "Hint 2. " in text
    for word in ("Show an answer", "tap to enlarge", "Copy to clipboard", "This is my guess"):
        assert word not in text


def links(pages: Iterable[Any]) -> list[Any]:
    return [link.get_object() for page in pages for link in page.get("/Annots", ())]


def test_links_stay_inside_or_lead_to_the_web(printed: Path, book: PdfReader) -> None:
    further = [page for _, title, page in sections(book, book.outline) if title == "Further"][1]
    first = book.page_labels.index("1")
    pages = {page.indirect_reference: number for number, page in enumerate(book.pages)}
    contents, chapters = (
        [pages[list.__getitem__(link["/Dest"], 0)] for link in links(part) if "/Dest" in link]
        for part in (book.pages[:first], book.pages[first:])
    )
    assert {first, further} <= set(contents)
    assert further in chapters, "the link from the other chapter"
    web = [str(link["/A"]["/URI"]) for link in links(book.pages) if "/A" in link]
    assert all(re.match("https://(?!example)", address) for address in web)
    alone = [str(link["/A"]["/URI"]) for link in links(PdfReader(printed / f"{TWO[0].id}.pdf").pages) if "/A" in link]
    assert f"{ADDRESS}/{TWO[1].id}.html#further" in alone
    assert all(address.startswith("https://") for address in alone)


def pictures(page: Any) -> list[Any]:
    return [one for one in page["/Resources"].get("/XObject", {}).values() if one.get_object()["/Subtype"] == "/Image"]


def test_a_chapter_has_all_its_figures_and_the_pages_of_the_book(
    printed: Path, book: PdfReader, texts: list[str]
) -> None:
    start = book.page_labels.index("1")
    for chapter in TWO:
        pdf = PdfReader(printed / f"{chapter.id}.pdf")
        page = BeautifulSoup((printed / f"{chapter.id}.html").read_text(encoding="utf-8"), "html.parser")
        figures = page.select("figure img")
        assert len(figures) > 5
        assert sum(len(pictures(page)) for page in pdf.pages) == len(figures)
        for place in (0, -1):
            assert pdf.pages[place].extract_text() == texts[start + place % len(pdf.pages)]
        assert pdf.root_object["/MarkInfo"]["/Marked"], "screen readers know headings and figures"
        start += len(pdf.pages)
    assert start == len(book.pages)


def test_without_a_browser_nothing_is_built(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lmcourse.site.book.find_chromium", lambda: None)
    monkeypatch.setattr("lmcourse.site.builder.build_site", None)
    assert main(["site", "--course", str(course), "--pdf", "05"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "prints with Chromium or Chrome, and there is none" in line


def test_chapters_follow_the_course_and_not_the_command(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def record(root: Path, out: Path, chapters: list[Any]) -> None:
        asked.append([chapter.number for chapter in chapters])
        raise CourseError("this is enough")

    monkeypatch.setattr("lmcourse.site.builder.build_site", record)
    main(["site", "--course", str(course), "12", "05", "12"])
    assert asked == [["05", "12"]]
