"""One browser for all browser tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# pytest's importlib mode gives test folders no import path; `pictures.py` shares `driver.py` with the tests.
sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium(in_ci: bool) -> str:
    """The path of the browser. Without one a person's run skips these tests; CI's fails."""
    missing = "playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("playwright") is not None:
        from driver import find_chromium

        path = find_chromium()
        if path is not None:
            return path
        missing = "there is no chromium (on Debian and Ubuntu: apt install chromium)"
    if in_ci:
        pytest.fail(f"The browser tests cannot run: {missing}")
    pytest.skip(f"The browser tests are left out: {missing}")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless browser."""
    from driver import open_browser

    with open_browser(chromium) as browser:
        yield browser
