"""nbformat's makers of notebooks, cells and outputs, with types."""

from __future__ import annotations

from typing import Any, cast

from nbformat import NotebookNode, v4

_v4 = cast(Any, v4)


def new_notebook(**parts: Any) -> NotebookNode:
    """A notebook."""
    return cast(NotebookNode, _v4.new_notebook(**parts))


def new_code_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A code cell with an id of its own."""
    return cast(NotebookNode, _v4.new_code_cell(source, **parts))


def new_markdown_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A text cell with an id of its own."""
    return cast(NotebookNode, _v4.new_markdown_cell(source, **parts))


def new_raw_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A cell that is neither run nor rendered."""
    return cast(NotebookNode, _v4.new_raw_cell(source, **parts))


def new_output(kind: str, **parts: Any) -> NotebookNode:
    """An output: "stream", "error", "display_data" or "execute_result"."""
    return cast(NotebookNode, _v4.new_output(kind, **parts))
