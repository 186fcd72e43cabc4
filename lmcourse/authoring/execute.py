"""Execute a notebook and keep only what is the same on every run."""

from __future__ import annotations

import copy
import json
import re
from contextlib import suppress

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from lmcourse.authoring.source import Source
from lmcourse.errors import CourseError

WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 120
"""The time limit of one cell."""

UNSTABLE = [
    (re.compile(r"0x[0-9a-f]{8,}"), "a memory address"),
    (re.compile(r"(/home/|/Users/|/root/|/tmp/)\S+"), "a path of this machine"),
]


def execute(notebook: NotebookNode, source: Source) -> None:
    """Run all cells, in place, and make the outputs independent of when and where they were made.

    Args:
        notebook: the document made from `source`, cell by cell; it runs in the folder of its source.
        source: for the line numbers in what is said of a cell that fails.

    Raises:
        CourseError: a cell raised, wrote to stderr or printed what differs from run to run.
    """
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(source.path.parent)}},
        store_widget_state=False,
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # it warns of TCP each time it starts
    )
    metadata = copy.deepcopy(notebook.metadata)
    with suppress(CellExecutionError):  # told below, with its line
        client.execute()
    notebook.metadata = metadata  # without the exact version of this machine's Python
    complaints = [
        f"{source.path}:{cell.line}: the cell {what}"
        for cell, node in zip(source.cells, notebook.cells, strict=True)
        for what in _complaints(node)
    ]
    if complaints:
        raise CourseError("\n".join(complaints))
    _number_widgets(notebook)


def _complaints(cell: NotebookNode) -> list[str]:
    """What is wrong with the outputs of a cell."""
    found = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            found.append(f"raises {output.ename}: {output.evalue}")
        if output.get("name") == "stderr":
            found.append(f"writes to stderr: {output.text.strip()[:200]}")
        text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
        found += [f"prints {what}: {match.group()}" for pattern, what in UNSTABLE if (match := pattern.search(text))]
    return found


def _number_widgets(notebook: NotebookNode) -> None:
    """Replace the random ids of widgets by numbers in the order of the page."""
    number = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if WIDGET in output.get("data", {}):
                number += 1
                view = json.loads(json.dumps(output.data[WIDGET]))
                output.data[WIDGET] = view | {"model_id": f"widget-{number}"}
