"""What grading writes into a notebook besides nbgrader's marks: why points are missing, and the seed."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.cells import new_output

KEY = "lmcourse"
"""The key of these notes in the metadata of a notebook. `restore` drops what a submission brings there."""

NO_SCORE = "NoScore"
"""The name of the error in a graded cell that gave no usable score."""

NOT_RUN = "NotRun"
"""The name of the error in a cell that was never run."""

TELLING = (NO_SCORE, NOT_RUN, "NameError", "CourseError")
"""Errors of a graded cell whose message is safe and useful: ours, and a missing name.

Whatever a learner's answer raises while it is judged is in the report; it never reaches the cell as an error.
"""


def problem_of(nb: NotebookNode) -> str:
    """What is wrong with the submission as a whole, in one sentence, or nothing."""
    return str(nb.metadata.get(KEY, {}).get("problem", ""))


def note(nb: NotebookNode, **facts: Any) -> None:
    """Add facts to the notes of a notebook."""
    nb.metadata[KEY] = {**nb.metadata.get(KEY, {}), **facts}


def error(name: str, sentence: str) -> NotebookNode:
    """An error output: nbgrader gives its cell 0, and feedback shows the sentence."""
    return new_output("error", ename=name, evalue=sentence, traceback=[f"{name}: {sentence}"])
