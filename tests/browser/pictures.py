"""Take the pictures in README.md from the real JupyterLab: `python -m tests.browser.pictures`."""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image

from lmcourse.site.browser import find_chromium, open_browser
from tests.browser.driver import COURSE, Notebook, start_lab

PATH = "01-floating-point/floating_point.ipynb"
FOLDER = COURSE / "docs" / "pictures"
SHARP = 1.5
"""Number of picture pixels per page pixel."""

WRONG = """\
def stable_softmax(logits: Tensor) -> Tensor:
    \"\"\"Softmax over the last axis that never overflows; same shape and dtype as the logits.\"\"\"
    weights = (logits - logits.max()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)"""


def main() -> int:
    """Take all pictures and return the exit status."""
    chromium = find_chromium()
    if chromium is None:
        print("The pictures need chromium: apt install chromium", file=sys.stderr)
        return 1
    folder = tempfile.TemporaryDirectory()
    with folder as path, open_browser(chromium) as browser, start_lab(Path(path)) as lab:
        page = browser.new_page(viewport={"width": 1200, "height": 780}, device_scale_factor=SHARP)
        notebook = Notebook.open(page, lab, PATH)
        notebook.run_script("if (!app.shell.leftCollapsed) app.shell.collapseLeft();")
        notebook.run_all()
        notebook.write("stable_softmax", WRONG)
        notebook.run("stable_softmax")
        notebook.run("check_stable_softmax")
        save(notebook, "exercise", top="stable_softmax")
        save(notebook, "explorer", top=cell_saying(notebook, "figures.number_line"))
    return 0


def cell_saying(notebook: Notebook, text: str) -> str:
    """Return the id of the first code cell that contains this text."""
    return next(cell["id"] for cell in notebook.cells() if cell["cell_type"] == "code" and text in cell["source"])


def save(notebook: Notebook, name: str, *, top: str) -> None:
    """Save a picture of the window with this cell near its top, with a palette that makes the file three times
    smaller."""
    index = [cell["id"] for cell in notebook.cells()].index(top)
    notebook.run_script(
        "panel.content.activeCellIndex = argument; await panel.content.scrollToItem(argument, 'start');", index
    )
    notebook.page.mouse.move(5, 5)
    notebook.page.wait_for_timeout(1000)
    picture = Image.open(BytesIO(notebook.page.screenshot()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.png"
    picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(COURSE)}   {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
