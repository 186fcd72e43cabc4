"""What a browser loads of each chapter before any figure: fewer than a million bytes, uncompressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from lmcourse.course import available_chapters
from lmcourse.site import frames as frames_module
from lmcourse.site.build import build_site
from lmcourse.site.frames import Frame, Picture, keep_picture, read_picture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

LIMIT = 1_000_000
ALT = "A description of a figure, as long as long ones are. " * 8


@pytest.fixture(scope="module")
def site(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The site of all chapters, with one picture in place of all frames: a page does not depend on what is in them."""

    def one_for_all(frames: Iterable[Frame], folder: Path) -> dict[Frame, Picture]:
        keep_picture(folder, "0" * 20, Image.new("RGB", (8, 4), "white"), ALT, 8)
        return dict.fromkeys(frames, read_picture(folder, "0" * 20))

    folder = tmp_path_factory.mktemp("weight")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "draw_frames", one_for_all)
        yield build_site(course, folder / "out", available_chapters(), folder / "cache").folder


@pytest.mark.browser
def test_the_first_view_of_every_chapter_is_small(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    weights = {name: first_view(site, page, name) for name in (*(c.id for c in available_chapters()), "index")}
    assert {name: weight for name, weight in weights.items() if weight >= LIMIT} == {}
    assert min(weights.values()) > 0.3 * LIMIT, "with styles, scripts and the fonts of formulas"


def first_view(site: Path, page: Page, name: str) -> int:
    """Bytes of all files but pictures that a page loads by itself, each once."""
    addresses: set[str] = set()

    def listen(request: Request) -> None:
        addresses.add(request.url)

    page.on("request", listen)
    page.goto((site / f"{name}.html").as_uri(), wait_until="networkidle")
    page.remove_listener("request", listen)
    files = [site / unquote(urlsplit(address).path) for address in addresses if address.startswith("file:")]
    return sum(file.stat().st_size for file in files if file.suffix != ".webp")
