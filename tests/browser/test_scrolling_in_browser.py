"""A learner who opens a long notebook can scroll to its end at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.driver import Notebook, start_lab

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

VIEW = "const view = panel.content.node.querySelector('.jp-WindowedPanel-outer');"
IN_VIEW = f"""{VIEW} const box = view.getBoundingClientRect();
const boxes = [...panel.node.querySelectorAll('.jp-Cell')].map(cell => cell.getBoundingClientRect());
return boxes.flatMap(({{top, bottom}}, place) => bottom > box.top && top < box.bottom ? [place] : []);
"""
"""Return the places of the cells in view, among those on the page."""


def test_a_long_notebook_scrolls_to_its_end(chromium: str, browser: Browser, tmp_path: Path) -> None:
    with start_lab(tmp_path) as lab:
        for path in ("12-transformer/transformer.ipynb", "14-memory/memory.ipynb"):
            page = browser.new_page(viewport={"width": 1366, "height": 768})
            notebook = Notebook.open(page, lab, path)
            last, reached = len(notebook.cells()) - 1, [0]
            page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer").hover()
            for _ in range(int(notebook.run_script(f"{VIEW} return view.scrollHeight / 600;"))):
                if last in reached:
                    break
                page.mouse.wheel(0, 600)
                page.wait_for_timeout(50)
                reached = notebook.run_script(IN_VIEW)
                assert reached, "an empty page"
            assert last in reached
            page.close()
