"""Notebook cells: nbformat's constructors with types, and what grading notes in a notebook besides nbgrader's marks."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from nbformat import NotebookNode, from_dict, v4

_v4 = cast(Any, v4)


def new_notebook(**parts: Any) -> NotebookNode:
    """A notebook."""
    return cast(NotebookNode, _v4.new_notebook(**parts))


def new_code_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A code cell with an id of its own."""
    return _new_cell("code", source, **{"execution_count": None, "outputs": [], **parts})


def new_markdown_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A text cell with an id of its own."""
    return _new_cell("markdown", source, **parts)


def new_raw_cell(source: str = "", **parts: Any) -> NotebookNode:
    """A cell that is neither run nor rendered."""
    return _new_cell("raw", source, **parts)


def _new_cell(kind: str, source: str, **parts: Any) -> NotebookNode:
    """A cell as nbformat makes it, but not validated alone, which takes long: the notebook is, with its cells."""
    cell = {"id": uuid4().hex[:8], "cell_type": kind, "metadata": {}, "source": source}
    return cast(NotebookNode, from_dict({**cell, **parts}))


def new_output(kind: str, **parts: Any) -> NotebookNode:
    """An output: "stream", "error", "display_data" or "execute_result"."""
    return cast(NotebookNode, _v4.new_output(kind, **parts))


METADATA_KEY = "lmcourse"
"""The key of grading's own notes in the metadata of a notebook. `RestoreCells` drops what a submission brings there."""

NO_SCORE = "NoScore"
"""The name of the error in a graded cell that gave no usable score."""

NOT_RUN = "NotRun"
"""The name of the error in a cell that was never run."""

SAFE_ERRORS = (NO_SCORE, NOT_RUN, "NameError", "CourseError")
"""Errors of a graded cell whose message is safe and useful: ours, and a missing name.

Whatever a learner's answer raises while it is judged is in the report; it never reaches the cell as an error.
"""


def problem_of(nb: NotebookNode) -> str:
    """What is wrong with the submission as a whole, in one sentence, or nothing."""
    return str(nb.metadata.get(METADATA_KEY, {}).get("problem", ""))


def add_notes(nb: NotebookNode, **notes: Any) -> None:
    """Add to what grading notes in the metadata of a notebook."""
    nb.metadata[METADATA_KEY] = {**nb.metadata.get(METADATA_KEY, {}), **notes}


def error_output(name: str, sentence: str) -> NotebookNode:
    """An error output: nbgrader gives its cell 0, and feedback shows the sentence."""
    return new_output("error", ename=name, evalue=sentence, traceback=[f"{name}: {sentence}"])
