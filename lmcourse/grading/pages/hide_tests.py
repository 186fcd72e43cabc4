"""Feedback that tells what went wrong and nothing of the hidden tests, neither source nor traceback."""

from __future__ import annotations

import re

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

from lmcourse.grading.cells import SAFE_ERRORS, new_output
from lmcourse.grading.preprocessors.strict_scores import NUMBER
from lmcourse.report import REPORT_MIME

BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"

MAX_ERROR_NAME_CHARS = 80
"""Characters of the name of an error."""

MIN_TELLING_CHARS = 4
"""Characters of a line that would give something away."""

UNDEFINED_NAME = re.compile(r"name '\w{1,80}' is not defined")
"""All of a NameError that is told."""


class HideTests(NbGraderPreprocessor):  # type: ignore[misc]
    """In graded cells: the public lines, and the report or one line on why there is none.

    What was printed there is left out: it could hold the inputs. This comes after `CleanForDisplay`, so a report is one
    that was drawn afresh.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Called for each cell of a graded notebook before it is drawn."""
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            hidden = _hidden_lines(cell.source)
            cell.source = without_hidden(cell.source)
            cell.outputs = [_safe_output(cell.outputs, hidden)]
        return cell, resources


def without_hidden(source: str) -> str:
    """The source without its hidden regions; a region that never ends is hidden to the last line."""
    lines = []
    hidden = False
    for line in source.split("\n"):
        if BEGIN in line:
            hidden = True
        elif END in line:
            hidden = False
        elif not hidden:
            lines.append(line)
    return "\n".join(lines).rstrip()


def _safe_output(outputs: list[NotebookNode], hidden: set[str]) -> NotebookNode:
    errors = [output for output in outputs if output.output_type == "error"]
    if errors:
        # Our own line says more than the error that came before it.
        error = next((each for each in reversed(errors) if each.ename in SAFE_ERRORS), errors[-1])
        return new_output("stream", name="stdout", text=_safe_error(error, hidden))
    results = [output for output in outputs if output.output_type == "execute_result"]  # `scores` leaves one
    if results and REPORT_MIME in results[-1].data:
        return results[-1]
    text = results[-1].data.get("text/plain", "") if results else ""
    return new_output("stream", name="stdout", text=f"{text} points" if NUMBER.fullmatch(text) else "No report.")


def _safe_error(error: NotebookNode, hidden: set[str]) -> str:
    """One line about an error. Names and messages are chosen by whoever raises it, so they are looked at twice."""
    name = error.ename if error.ename.isidentifier() and len(error.ename) <= MAX_ERROR_NAME_CHARS else "An error"
    undefined = UNDEFINED_NAME.match(error.evalue)
    says = error.evalue if name != "NameError" else undefined.group() if undefined else ""
    if name not in SAFE_ERRORS or not says or any(line in says for line in hidden):
        return f"{name} while this check ran"
    return f"{name}: {says}"


def _hidden_lines(source: str) -> set[str]:
    """The lines of the hidden regions, which nothing that is told may repeat."""
    shown = set(without_hidden(source).split("\n"))
    lines = {line.strip() for line in source.split("\n") if line not in shown}
    return {line for line in lines if len(line) >= MIN_TELLING_CHARS and BEGIN not in line and END not in line}
