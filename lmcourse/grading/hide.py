"""Feedback that tells what went wrong and nothing of the hidden tests, neither source nor traceback."""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

from lmcourse.grading.cells import new_output
from lmcourse.grading.notes import TELLING
from lmcourse.grading.reports import MIME

BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"


class HideTests(NbGraderPreprocessor):  # type: ignore[misc]
    """In graded cells: the public lines, and the report or one line on why there is none.

    What was printed there is left out: it could hold the inputs.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Called for each cell of a graded notebook before it is drawn."""
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            cell.source = without_hidden(cell.source)
            cell.outputs = [_discreet(cell.outputs)]
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


def _discreet(outputs: list[NotebookNode]) -> NotebookNode:
    errors = [output for output in outputs if output.output_type == "error"]
    if errors:
        # Our own line says more than the error that came before it.
        error = next((each for each in reversed(errors) if each.ename in TELLING), errors[-1])
        line = f"{error.ename}: {error.evalue}" if error.ename in TELLING else f"{error.ename} while this check ran"
        return new_output("stream", name="stdout", text=line)
    results = [output for output in outputs if output.output_type == "execute_result"]  # `scores` leaves one
    if results and MIME in results[-1].data:
        return results[-1]
    text = results[-1].data.get("text/plain", "") if results else ""
    return new_output("stream", name="stdout", text=f"{text} points" if text else "No report.")
