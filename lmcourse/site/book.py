"""Print the site as a book: a PDF of all chapters with a title page and contents, and a PDF of each chapter.

Chromium prints each page, with page numbers that continue from chapter to chapter, and pypdf joins them. The contents
are printed last, because only then the page of each section is known; their own pages have Roman numbers.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.site.browser import find_chromium, open_browser
from lmcourse.site.builder import TITLE
from lmcourse.site.front import LEAD

if TYPE_CHECKING:  # optional packages
    from playwright.sync_api import Page
    from pypdf import PdfReader, PdfWriter

BOOK = "transformers-by-hand.pdf"
"""The PDF of all chapters, in the folder of the site."""

PAPER = Path(__file__).parent / "paper"

SCALE = 0.8
"""Size of the text on paper, relative to a screen: 88 columns of code fit in a line."""

FRONT = (
    "@page { @bottom-center { content: counter(page, lower-roman) } } @page :first { @bottom-center { content: none } }"
)

Place = tuple[str, str]
"""A file of the site without its ending, and the id of an element of it or ""."""


@dataclass(frozen=True)
class Printed:
    """A printed chapter, the id and title of each of its sections, and the number of pages before it."""

    chapter: Chapter
    pdf: PdfReader
    sections: list[tuple[str, str]]
    before: int

    def places(self) -> Iterator[tuple[Place, int, float]]:
        """Yield the places in the chapter that links lead to, with their page, counted from 0, and height on it."""
        yield (self.chapter.id, ""), self.before, float(self.pdf.pages[0].mediabox.height)
        for name, target in self.pdf.named_destinations.items():
            page = self.pdf.get_destination_page_number(target)
            if page is not None:
                yield (self.chapter.id, name.lstrip("/")), self.before + page, float(target.top or 0)


def find_printer() -> str:
    """Return the path of a browser that prints; raise CourseError if it or a package is missing."""
    if not all(map(find_spec, ("playwright", "pypdf"))):
        raise CourseError("--pdf needs Playwright and pypdf. Install them: python -m pip install 'lmcourse[site]'")
    chromium = find_chromium()
    if chromium is None:
        raise CourseError("--pdf prints with Chromium or Chrome, and there is none (on Debian: apt install chromium)")
    return chromium


def print_book(folder: Path, chapters: Sequence[Chapter], published: str = "") -> int:
    """Write the PDFs of a built site into its folder, and return the number of pages of the book.

    Args:
        folder: the folder of the site.
        chapters: those of the site, in order.
        published: the address of the site, if it has one; links from one chapter's PDF to other chapters lead there.
    """
    from pypdf import PdfReader, PdfWriter

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of Chromium's numbers of objects
    printed: list[Printed] = []
    before = 0
    with open_browser(find_printer()) as browser:
        page = browser.new_page(color_scheme="light")
        for chapter in chapters:
            page.goto((folder / f"{chapter.id}.html").as_uri())
            page.add_style_tag(content=f"{_read('paper.css')} html {{ counter-reset: page {before} }}")
            sections = page.evaluate(_read("paper.js"))
            pdf = _pdf(page)
            printed.append(Printed(chapter, PdfReader(io.BytesIO(pdf)), sections, before))
            before += len(printed[-1].pdf.pages)
            print(f"{chapter.number} · {chapter.title}: {len(printed[-1].pdf.pages)} pages", flush=True)
            alone = PdfWriter(clone_from=io.BytesIO(pdf))
            for link, (name, fragment) in _links(alone, folder, ""):
                if name:
                    _lead(link, f"{published or '.'}/{name}.html{fragment and f'#{fragment}'}")
            alone.write(folder / f"{chapter.id}.pdf")
        # Otherwise the front would have the last chapter's address, and its links would be lost.
        page.goto("about:blank")
        page.set_content(_front_html(printed, folder))
        front = PdfReader(io.BytesIO(_pdf(page)))
    book = _join(front, printed, folder)
    book.write(folder / BOOK)
    return len(book.pages)


def _read(name: str) -> str:
    return (PAPER / name).read_text(encoding="utf-8")


def _pdf(page: Page) -> bytes:
    return page.pdf(prefer_css_page_size=True, print_background=True, scale=SCALE, outline=True, tagged=True)


def _front_html(printed: list[Printed], folder: Path) -> str:
    """Return the title page and the contents, with links into the site."""
    lines: list[str] = []
    part = ""
    for one in printed:
        numbers = {name: page - one.before for (_, name), page, _ in one.places()}
        if one.chapter.part != part:
            part = one.chapter.part
            lines.append(f'<p class="part">{escape(part)}</p>')
        rows = [("", f"{one.chapter.number} · {one.chapter.title}"), *one.sections]
        for name, title in rows:
            address = (folder / f"{one.chapter.id}.html").as_uri() + (name and f"#{name}")
            number = one.before + numbers.get(name, 0) + 1
            kind = "section" if name else "chapter"
            lines.append(f'<a class="{kind}" href="{address}">{escape(title)}<i></i>{number}</a>')
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>{TITLE}</title><style>{_read("paper.css")}{FRONT}</style></head>'
        f'<body><div class="paper-title"><h1>{TITLE}</h1><p>{escape(LEAD)}</p></div>'
        f'<div class="paper-contents"><h2>Contents</h2>{"".join(lines)}</div></body></html>'
    )


def _join(front: PdfReader, printed: list[Printed], folder: Path) -> PdfWriter:
    """Return the book: all pages, the outlines of all chapters, page labels, and links that lead to pages."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.constants import PageLabelStyle
    from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject, TextStringObject

    book = PdfWriter()
    for name, pdf in (("index", front), *((one.chapter.id, one.pdf) for one in printed)):
        # pypdf would drop links to names, which are unique only in a chapter.
        lone = PdfWriter(clone_from=pdf)
        for link, (file, fragment) in _links(lone, folder, name):
            _lead(link, f"{(folder / file).as_uri()}.html#{fragment}")
        stream = io.BytesIO()
        lone.write(stream)
        book.append(PdfReader(stream))
    places = {place: (page + len(front.pages), top) for one in printed for place, page, top in one.places()}
    for link, (file, fragment) in _links(book, folder, ""):
        page, top = places.get((file, fragment)) or places.get((file, "")) or (0, 0.0)
        link.pop("/A")
        target = [book.pages[page].indirect_reference, NameObject("/XYZ"), NullObject(), FloatObject(top), NullObject()]
        link[NameObject("/Dest")] = ArrayObject(target)
    book.add_metadata({"/Title": TITLE})
    book.root_object[NameObject("/Lang")] = TextStringObject("en")
    book.set_page_label(0, len(front.pages) - 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    book.set_page_label(len(front.pages), len(book.pages) - 1, style=PageLabelStyle.DECIMAL, start=1)
    return book


def _links(pdf: PdfWriter, folder: Path, here: str) -> Iterator[tuple[Any, Place]]:
    """Yield each link into the site, and the place that it leads to; in the same file, the name is `here`."""
    for page in pdf.pages:
        for reference in page.get("/Annots", ()):
            link = reference.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            if "/Dest" in link:
                yield link, (here, str(link["/Dest"]).lstrip("/"))
            elif address.startswith(f"{folder.as_uri()}/"):
                file, fragment = urldefrag(address)
                yield link, (file.rpartition("/")[2].removesuffix(".html"), unquote(fragment))


def _lead(link: Any, address: str) -> None:
    """Let a link open an address."""
    from pypdf.generic import DictionaryObject, NameObject, TextStringObject

    link.pop("/Dest", None)
    action = {NameObject("/S"): NameObject("/URI"), NameObject("/URI"): TextStringObject(address)}
    link[NameObject("/A")] = DictionaryObject(action)
