"""Execute a notebook and make its outputs reproducible."""

from __future__ import annotations

import copy
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from lmcourse.authoring.source import Source
from lmcourse.errors import CourseError
from lmcourse.widgets.live import WIDGET_MIME

CELL_TIMEOUT_SECONDS = 120

KERNEL_OPTIONS = ["--InteractiveShellApp.ignore_cwd=True", "--Application.log_level=ERROR"]
"""Options of the kernel: do not search the current folder for modules, and do not print warnings."""

MEMORY_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
ABSOLUTE_PATH = re.compile(r"(/home/|/Users/|/root/|/tmp/|[A-Z]:\\)[^\s\"'<>]+")
CHECKOUT = Path(__file__).resolve().parents[2]


def execute(notebook: NotebookNode, source: Source) -> None:
    """Run all cells in the folder of their source, and make the outputs independent of time and machine.

    Raises CourseError if a cell raises an error, does not end, writes to stderr, or prints what varies from run to run.
    """
    metadata = copy.deepcopy(notebook.metadata)
    _run(notebook, source)
    notebook.metadata = metadata  # removes the state of widgets and the exact Python version of this machine
    machine = [sys.prefix, str(CHECKOUT), str(source.path.resolve().parent)]
    problems = [
        f"{source.path}:{cell.line}: the cell {what}"
        for cell, node in zip(source.cells, notebook.cells, strict=True)
        for what in _unreproducible_outputs(node, machine)
    ]
    if problems:
        raise CourseError("\n".join(problems))
    _number_widgets(notebook)


def _run(notebook: NotebookNode, source: Source) -> None:
    """Run the cells until one raises an error, which is then one of its outputs."""
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(source.path.parent)}},
        record_timing=False,
        coalesce_streams=True,  # a slow machine sends the text of one print in several pieces
        extra_arguments=KERNEL_OPTIONS,
    )
    reached = 0

    def reach(cell: NotebookNode, cell_index: int) -> None:
        nonlocal reached
        reached = cell_index

    client.on_cell_start = reach
    with (
        tempfile.TemporaryDirectory(prefix="lmcourse-build-", ignore_cleanup_errors=True) as profile,
        tempfile.TemporaryFile() as stderr,  # a kernel that shuts down may print errors about closed sockets
    ):
        try:
            client.execute(env=_environment(Path(profile)), stderr=stderr)
        except CellExecutionError:
            pass
        except (CellTimeoutError, DeadKernelError) as error:
            what = (
                "ended Python itself"
                if isinstance(error, DeadKernelError)
                else f"runs longer than {CELL_TIMEOUT_SECONDS} s"
            )
            raise CourseError(f"{source.path}:{source.cells[reached].line}: the cell {what}") from error


def _environment(profile: Path) -> dict[str, str]:
    """Return the kernel's environment, without start-up files and without modules next to the notebook."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"}
    # An empty entry of PYTHONPATH means "the current folder", which is the notebook's.
    path = [str(Path(entry).resolve()) for entry in kept.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    own = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "IPYTHONDIR": str(profile)}
    return kept | own | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


def _unreproducible_outputs(cell: NotebookNode, machine: list[str]) -> Iterator[str]:
    """Yield the reasons why a cell's outputs are not reproducible."""
    expected = "raises-exception" in cell.metadata.get("tags", [])
    for output in cell.get("outputs", []):
        if output.output_type == "error" and not expected:
            yield f"raises {output.ename}: {output.evalue}"
            continue
        if output.get("name") == "stderr":
            yield f"writes to stderr: {output.text.strip()[:200]}"
            continue
        text = "\n".join(_texts(output))
        if address := MEMORY_ADDRESS.search(text):
            yield f"shows a memory address: {address.group()}"
        path = ABSOLUTE_PATH.search(text)
        if path or any(place in text for place in machine):
            yield f"shows a path of this machine{f': {path.group()}' if path else ''}"


def _texts(output: Any) -> Iterator[str]:
    yield output.get("text", "")
    yield from output.get("traceback", [])
    yield from (content for kind, content in output.get("data", {}).items() if kind.startswith("text/"))


def _number_widgets(notebook: NotebookNode) -> None:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    views = [output.data[WIDGET_MIME] for output in outputs if WIDGET_MIME in output.get("data", {})]
    for number, view in enumerate(views, start=1):
        view["model_id"] = f"widget-{number}"
