"""The class report in a real browser: long names break lines, not the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lmcourse.grading.class_report import write_report
from lmcourse.grading.result import Lateness
from lmcourse.report import Report
from tests.grading.made_up_class import NAMES, result, solved

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

LONG = "Wolfeschlegelsteinhausenbergerdorff" * 6
WIDTHS = (360, 1280)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    long_exercise = Report("x" * 90, 0.0, 2, True, (), diagnosis=f"`{LONG}` is not defined")
    late = Lateness(7200, 3, f"timestamp.txt is not believed ({LONG}).")
    students = [result(LONG, *map(solved, NAMES), long_exercise, late=late), result("Ada", *map(solved, NAMES))]
    return write_report([*students, result(f"{LONG}2", reason=LONG)], tmp_path_factory.mktemp("report"))[0]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_name_is_wider_than_the_page(page: Path, browser: Browser, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 800})
    try:
        tab.goto(page.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert LONG[:20] in tab.inner_text("body")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.add_style_tag(content="* { overflow-wrap: normal !important; white-space: nowrap !important; }")
        assert tab.evaluate("document.documentElement.scrollWidth") > width  # the measurement detects a wide element
    finally:
        tab.close()
