"""Execute a notebook and keep only what is the same on every run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from lmcourse.errors import CourseError

WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 120
"""The time limit of one cell."""

UNSTABLE = [
    (re.compile(r"0x[0-9a-f]{8,}"), "a memory address"),
    (re.compile(r"(/home/|/Users/|/root/|/tmp/)\S+"), "a path of this machine"),
]


def execute(notebook: NotebookNode, folder: Path, name: str) -> None:
    """Run all cells in `folder`, in place, and make the outputs independent of when and where they were made.

    Raises:
        CourseError: a cell raised, wrote to stderr or printed what differs from run to run.
    """
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        record_timing=False,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise CourseError(f"{name}: a cell failed.\n{error}") from error
    complaints = [f"{name}, cell {cell.id}: prints {what}" for cell in _code(notebook) for what in _unstable(cell)]
    if complaints:
        raise CourseError("\n".join(complaints))
    _number_widgets(notebook)


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _unstable(cell: NotebookNode) -> list[str]:
    found = []
    for output in cell.outputs:
        if output.get("name") == "stderr":
            found.append(f"to stderr: {output.text.strip()[:200]}")
        text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
        found += [f"{what}: {match.group()}" for pattern, what in UNSTABLE if (match := pattern.search(text))]
    return found


def _number_widgets(notebook: NotebookNode) -> None:
    """Replace the random ids of widgets by numbers in the order of the page."""
    number = 0
    for cell in _code(notebook):
        for output in cell.outputs:
            if WIDGET in output.get("data", {}):
                number += 1
                view = json.loads(json.dumps(output.data[WIDGET]))
                output.data[WIDGET] = view | {"model_id": f"widget-{number}"}
