"""A browser for the pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))


@pytest.fixture(scope="module")
def browser(in_ci: bool) -> Iterator[Browser]:
    from driver import find_chromium, open_browser

    path = find_chromium()
    if path is None:
        (pytest.fail if in_ci else pytest.skip)("there is no chromium (on Debian and Ubuntu: apt install chromium)")
    with open_browser(path) as browser:
        yield browser
