"""nbgrader preprocessor: a score is a plain number from 0 to the cell's points, and nothing else.

nbgrader alone gives full marks for NaN, a negative number, True, a tensor, any text, or no result at all; it
stops at a number above the maximum, takes the first result of several, and gives 0 for one warning on stderr.
"""

from __future__ import annotations

import re

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

from lmcourse.grading.cells import NO_SCORE, error_output
from lmcourse.grading.reports import read_report
from lmcourse.report import CHECK_PREFIX, REPORT_MIME

NUMBER = re.compile(r"\d{1,9}(\.\d{1,20})?(e-?\d{1,3})?")


class StrictScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Leaves every graded code cell with either one valid score or one error that says why there is none."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Called for each cell after the notebook has run."""
        if cell.cell_type != "code" or not is_grade(cell) or is_solution(cell):
            return cell, resources
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"  # a warning is no failure
        if any(output.output_type == "error" for output in cell.outputs):
            return cell, resources
        results = [output for output in cell.outputs if output.output_type == "execute_result"]
        problem = (
            _problem(cell, results[-1]) if results else "The check gave no result: was `check` given another meaning?"
        )
        others = [output for output in cell.outputs if output.output_type != "execute_result"]
        cell.outputs = [*others, error_output(NO_SCORE, problem) if problem else results[-1]]
        return cell, resources


def _problem(cell: NotebookNode, result: NotebookNode) -> str:
    """Why this result is no score, in one sentence, or nothing."""
    text = result.data.get("text/plain")
    shown = repr(text[:40]) if isinstance(text, str) else f"a {type(text).__name__}"
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        return f"The check gave {shown}, which is not a score: was `check` given another meaning?"
    most = float(cell.metadata.nbgrader["points"])
    if float(text) > most:
        return f"The check gave {shown}, more than the {most:g} points of this exercise."
    if REPORT_MIME not in result.data:
        return ""
    report = read_report(result.data[REPORT_MIME])
    exercise = cell.metadata.nbgrader["grade_id"].removeprefix(CHECK_PREFIX)
    if report is None or report.points != float(text):
        return "The report of the check and its points disagree."
    if report.exercise != exercise:
        return f"This cell judges `{exercise}` but was given `{report.exercise}`: use `def {exercise}`."
    return ""
