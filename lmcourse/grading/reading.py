"""Reading submissions that may be anything: nbgrader gets a notebook every time, an empty one if need be."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode

from lmcourse.grading.cells import new_notebook

LARGEST = 50 * 2**20
"""Bytes of the largest notebook that is read; an honest one with pictures stays under 5 MB."""


class UnreadableError(Exception):
    """The file is not a notebook; the message says why, and what to do."""


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in this file.

    Raises:
        UnreadableError: there is none.
    """
    if path.is_symlink():
        raise UnreadableError(f"{path.name} is a link to another file: hand in the notebook itself.")
    try:
        if path.stat().st_size > LARGEST:
            raise UnreadableError(
                f"{path.name} is larger than {LARGEST // 2**20} MB: clear its outputs (Kernel, Restart and "
                "Clear Outputs) and hand it in again."
            )
        text = path.read_bytes().decode("utf-8-sig")
        notebook: NotebookNode = nbformat.reads(text, as_version=4)
        if not all(isinstance(cell.source, str) for cell in notebook.cells):
            raise ValueError("a cell without text")
    except UnreadableError:
        raise
    except Exception as error:  # nbformat raises whatever a strange file leads it to
        raise UnreadableError(
            f"{path.name} cannot be read as a notebook ({type(error).__name__}): open it in JupyterLab, "
            "save it and hand it in again."
        ) from error
    return notebook


class SubmissionExporter(NotebookExporter):
    """nbgrader's way to read and write a notebook, for files that may be broken.

    An unreadable file becomes a notebook without cells; `restore` puts the graded cells back, and each is
    worth 0 for the reason given here. So it is marked like any other, instead of vanishing from the
    gradebook.
    """

    def from_filename(  # type: ignore[override]  # nbconvert declares a notebook, and gives its text
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert the notebook in a file. Raises OSError only if the file is gone."""
        path = Path(filename)
        resources = ResourcesDict() if resources is None else resources
        resources["metadata"] = ResourcesDict(name=path.stem, path=str(path.parent))
        try:
            notebook = read_notebook(path)
        except UnreadableError as error:
            notebook = new_notebook()
            resources["problem"] = str(error)
        text, resources = cast(Any, self).from_notebook_node(notebook, resources=resources, **options)
        # Half a surrogate pair, which JSON can hold and UTF-8 cannot, must not stop the file being written.
        return text.encode("utf-8", "replace").decode("utf-8"), resources
