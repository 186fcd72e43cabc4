"""Execute a notebook and make its outputs reproducible."""

from __future__ import annotations

import copy
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from lmcourse.authoring.source import Source
from lmcourse.base.errors import CourseError
from lmcourse.widgets.live import WIDGET_MIME

CELL_TIMEOUT_SECONDS = 120

KERNEL_OPTIONS = ["--InteractiveShellApp.ignore_cwd=True", "--Application.log_level=ERROR"]
"""Options of the kernel: do not search the current folder for modules, and do not print warnings."""

MEMORY_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
ABSOLUTE_PATH = re.compile(r"(/home/|/Users/|/root/|/tmp/|[A-Z]:\\)[^\s\"'<>]+")
CHECKOUT = Path(__file__).resolve().parents[2]


def execute(notebook: NotebookNode, source: Source, stored: NotebookNode | None = None) -> None:
    """Run all cells in the folder of their source, and make the outputs independent of time and machine.

    Cells whose code, and all code above them, is as in `stored` keep the outputs that are stored there. If all cells
    do, no kernel is started. Otherwise all cells run, because those above may change what those below compute, if only
    by drawing random numbers. If that shows other text above than the stored one, all outputs are new.

    Raises CourseError if a cell raises an error, does not end, writes to stderr, or prints what varies from run to run.
    """
    kept = _unchanged(_code_cells(notebook), _code_cells(stored) if stored else [])
    if len(kept) < len(_code_cells(notebook)):
        metadata = copy.deepcopy(notebook.metadata)
        _run(notebook, source)
        notebook.metadata = metadata  # removes the state of widgets and the exact Python version of this machine
    if all(_same_text(*pair) for pair in zip(_code_cells(notebook), kept, strict=False)):
        for cell, old in zip(_code_cells(notebook), kept, strict=False):
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
    machine = [sys.prefix, str(CHECKOUT), str(source.path.resolve().parent)]
    problems = [
        f"{source.path}:{cell.line}: the cell {what}"
        for cell, node in zip(source.cells, notebook.cells, strict=True)
        for what in _unreproducible_outputs(node, machine)
    ]
    if problems:
        raise CourseError("\n".join(problems))
    _number_widgets(notebook)


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _unchanged(cells: list[NotebookNode], stored: list[NotebookNode]) -> list[NotebookNode]:
    """Return the stored cells from the beginning up to the first that has other code or was never run."""
    pairs = zip(cells, stored, strict=False)
    same = takewhile(lambda pair: pair[0].source == pair[1].source and pair[1].execution_count is not None, pairs)
    return [old for _, old in same]


def _same_text(cell: NotebookNode, old: NotebookNode) -> bool:
    """Return True if a cell has not run, need not give the same output twice, or gives the stored text."""
    ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
    return cell.execution_count is None or ignored or _all_text(cell) == _all_text(old)


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
            dead = isinstance(error, DeadKernelError)
            what = "ended Python itself" if dead else f"runs longer than {CELL_TIMEOUT_SECONDS} s"
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


def _all_text(cell: NotebookNode) -> list[list[str]]:
    return [sorted(_texts(output)) for output in cell.outputs]


def _texts(output: Any) -> Iterator[str]:
    yield output.get("text", "")
    yield from output.get("traceback", [])
    yield from (content for kind, content in output.get("data", {}).items() if kind.startswith("text/"))


def _number_widgets(notebook: NotebookNode) -> None:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    views = [output.data[WIDGET_MIME] for output in outputs if WIDGET_MIME in output.get("data", {})]
    for number, view in enumerate(views, start=1):
        view["model_id"] = f"widget-{number}"
