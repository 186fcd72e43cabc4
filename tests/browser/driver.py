"""A real JupyterLab and a real browser, for the browser tests and for the pictures in README.md."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # if playwright is missing, the `chromium` fixture prints advice
    from playwright.sync_api import Locator, Page

COURSE = Path(__file__).resolve().parents[2]
LONG = 30_000
"""Largest time in milliseconds for a kernel or a page on a busy machine."""


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab on a learner's copy of the course."""

    course: Path
    address: str
    token: str

    def url(self, path: str) -> str:
        """Return the address of a page."""
        return f"{self.address}/{path}?token={self.token}"


@contextmanager
def start_lab(folder: Path, released: Path = COURSE / "notebooks") -> Iterator[Lab]:
    """Start `lmcourse lab` with separate settings on a new copy of the released notebooks in `folder`."""
    course = folder / "course"
    ignored = shutil.ignore_patterns("welcome.ipynb", ".ipynb_checkpoints")
    shutil.copytree(released, course / "notebooks", ignore=ignored)
    shutil.copy(COURSE / "nbgrader_config.py", course)
    port = free_port()
    lab = Lab(course, f"http://127.0.0.1:{port}", secrets.token_hex(16))
    command = [
        *(sys.executable, "-m", "lmcourse", "lab", "--course", str(course), "--", "--no-browser"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True"),
    ]
    env = os.environ | {"PYTHONPATH": str(COURSE), "JUPYTER_TOKEN": lab.token, "IPYTHONDIR": str(folder / "ipython")}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        env[f"JUPYTER_{name}_DIR"] = str(folder / name.lower())
    env["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    env["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    with serving(command, folder, env, folder / "lab.log", lab.url("api")):
        yield lab


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(command: list[str], folder: Path, env: dict[str, str], log: Path, address: str) -> Iterator[None]:
    """Start a server in a folder, wait until this address answers, and end the server after the `with` block."""
    with log.open("w", encoding="utf-8") as output:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_up(address, server, log)
        yield
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_up(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The server does not answer, or has ended:\n{log.read_text(encoding='utf-8')}")


class Notebook:
    """An open notebook in the browser."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    @classmethod
    def open(cls, page: Page, lab: Lab, path: str) -> Notebook:
        """Open a notebook by its address, as a link does."""
        page.set_default_timeout(LONG)
        page.goto(lab.url(f"lab/tree/{path}"))
        notebook = cls(page)
        notebook.wait_until_ready(path)
        return notebook

    def switch(self, path: str) -> None:
        """Bring another document of the same JupyterLab to the front."""
        self.run_script("await app.commands.execute('docmanager:open', {path: argument});", path)
        self.wait_until_ready(path)

    def wait_until_ready(self, path: str) -> None:
        """Wait until the notebook is the current document and its kernel answers."""
        self.page.wait_for_function("path => window.jupyterapp?.shell?.currentWidget?.context?.path === path", arg=path)
        self.run_script("await app.restored; await panel.context.ready; await panel.sessionContext.ready;")
        self.run_script("await panel.sessionContext.session.kernel.info;")

    def run_script(self, body: str, argument: Any = None) -> Any:
        """Run JavaScript that may use `app`, `panel` (the notebook) and `argument`; returns what it returns."""
        names = "const app = window.jupyterapp; const panel = app.shell.currentWidget;"
        return self.page.evaluate(f"async argument => {{ {names} {body} }}", argument)

    def run_all(self) -> None:
        """Run all cells one after the other, because "Run All" would stop at the first open exercise."""
        self.run_script("""
            for (let index = 0; index < panel.content.widgets.length; index++) {
                if (panel.content.widgets[index].model.type !== 'code') continue;
                panel.content.activeCellIndex = index;
                await app.commands.execute('notebook:run-cell');
            }
        """)

    def run(self, cell_id: str) -> None:
        """Run one cell and wait for it."""
        self.select(cell_id)
        self.run_script("await app.commands.execute('notebook:run-cell');")

    def select(self, cell_id: str) -> Locator:
        """Make a cell active, scroll it into view, and return it."""
        index = [cell["id"] for cell in self.cells()].index(cell_id)
        self.run_script(
            "panel.content.activeCellIndex = argument; await panel.content.scrollToItem(argument, 'center');",
            index,
        )
        cell = self.panel.locator(f".jp-Cell[data-windowed-list-index='{index}']")
        cell.wait_for(state="attached")
        cell.scroll_into_view_if_needed()
        return cell

    def write(self, cell_id: str, source: str) -> None:
        """Replace the text of a cell by typing."""
        for _ in range(5):  # on a busy machine, a cell that is rendered again takes the keyboard focus away
            self.select(cell_id).locator(".cm-content").click()
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(source)
            if self.cell(cell_id)["source"].strip() == source.strip():
                return

    def keep(self, cell_ids: Collection[str]) -> None:
        """Delete all other cells."""
        self.run_script(
            "const cells = panel.content.model.sharedModel;"
            "for (let index = cells.cells.length - 1; index >= 0; index--)"
            "    if (!argument.includes(cells.getCell(index).id)) cells.deleteCell(index);",
            [*cell_ids],
        )

    def save(self) -> None:
        """Save the notebook."""
        self.run_script("await panel.context.save();")

    def cells(self) -> list[dict[str, Any]]:
        """Return the cells in the form in which they would be saved."""
        cells: list[dict[str, Any]] = self.run_script("return panel.context.model.toJSON().cells;")
        return cells

    def cell(self, cell_id: str) -> dict[str, Any]:
        """Return a cell in the form in which it would be saved."""
        return next(cell for cell in self.cells() if cell["id"] == cell_id)


def solution_of(cell_id: str, chapter: str = "01-floating-point", name: str = "floating_point") -> str:
    """Return the text of this cell in the solution notebook, without nbgrader's markers."""
    text = (COURSE / "solutions" / chapter / f"{name}.ipynb").read_text(encoding="utf-8")
    [source] = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["id"] == cell_id]
    return "\n".join(line for line in source.splitlines() if "###" not in line)
