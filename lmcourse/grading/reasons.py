"""Why a submission earned what it did, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from nbformat import NotebookNode

from lmcourse.grading.notes import KEY, NOT_RUN, TELLING, problem_of
from lmcourse.grading.reports import read_report
from lmcourse.report import CHECK_PREFIX, REPORT_MIME

SHOWN = 3
"""Exercises that the line explains; the feedback page has them all."""


def reason(graded: NotebookNode, points: Mapping[str, float], possible: Mapping[str, float]) -> str:
    """One line about a graded notebook.

    Args:
        graded: as autograding left it.
        points, possible: earned and most points by exercise.
    """
    problem = problem_of(graded)
    short = [name for name in possible if points[name] < possible[name]]
    if not short and not problem:
        return "Every check passed."
    if problem and not any(points.values()):
        return problem
    why = {name: text for name, text in _explanations(graded).items() if name in short}
    parts = [problem] if problem else []
    parts.append(f"{len(possible) - len(short)} of {len(possible)} exercises earn all their points.")
    explained = [name for name in short if why.get(name)]
    parts += [f"{name}: {why[name]}" for name in explained[:SHOWN]]
    if len(explained) > SHOWN:
        parts.append(f"And {len(explained) - SHOWN} more; the feedback page shows each.")
    return " ".join(parts)


def _explanations(graded: NotebookNode) -> dict[str, str]:
    """A sentence for every exercise that has something to say."""
    put_back = graded.metadata.get(KEY, {}).get("put_back", [])
    found = {}
    for cell in graded.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if cell.cell_type == "code" and name.startswith(CHECK_PREFIX):
            text = _explanation(cell.outputs)
            restored = "its check was deleted and has been put back. " if name in put_back else ""
            found[name.removeprefix(CHECK_PREFIX)] = restored + text
    return found


def _explanation(outputs: list[NotebookNode]) -> str:
    errors = [output for output in outputs if output.output_type == "error"]
    if errors:
        # The problem of the whole notebook leads the line already.
        if any(error.ename == NOT_RUN for error in errors):
            return ""
        error = errors[-1]
        if error.ename == "NameError":
            return f"{error.evalue}; is the answer there, under that name, and does its cell run?"
        if error.ename in TELLING:
            return str(error.evalue)
        if error.ename == "CellTimeoutError":
            return "its check ran out of time."
        return f"{error.ename} while its check ran."
    for output in outputs:
        report = read_report(output.get("data", {}).get(REPORT_MIME))
        if report is not None and not report.answered:
            return "not answered."
        if report is not None:
            passed = sum(case.passed for case in report.cases)
            return f"{report.diagnosis or f'{passed} of {len(report.cases)} cases pass.'}"
    return ""
