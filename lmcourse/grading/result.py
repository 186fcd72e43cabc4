"""The result of grading one submission: points, and one line on why there are not more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.cells import METADATA_KEY, NOT_RUN, SAFE_ERRORS, problem_of
from lmcourse.grading.examination_result import Evidence, evidence_from_json
from lmcourse.grading.lateness import Lateness
from lmcourse.grading.regrade import RegradeRequest, regrade_requests
from lmcourse.grading.reports import read_report, reports_in
from lmcourse.report import CHECK_PREFIX, REPORT_MIME, Report, stand_in_sentence

MAX_EXPLAINED = 3
"""Exercises that `reason` explains; the feedback page has them all."""


@dataclass(frozen=True)
class SubmissionResult:
    """One submission: its points, and a sentence its author can act on.

    Attributes:
        student: the name of their folder; "me" for a learner's own notebook.
        assignment: its id, as in "01-floating-point"; empty if the notebook was not recognised.
        score, max_score: points earned and possible.
        exercises: points by exercise.
        reason: why it is not more, or that every check passed.
        seed: of the hidden cases; `LMCOURSE_SEED` set to it repeats the run.
        evidence: what honest work does not do; it changes no mark.
        reports: by exercise, those that there are.
        answers: by exercise, the text of its cell, if it is answered.
        failed: whether the grader failed, so that the points say nothing.
        late: how late it came, and what that costs; the score is without the penalty already.
        requests: to grade an answer again, of this notebook or an earlier one.
    """

    student: str
    assignment: str
    score: float
    max_score: float
    exercises: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seed: int | None = None
    evidence: tuple[Evidence, ...] = ()
    reports: dict[str, Report] = field(default_factory=dict, repr=False)
    answers: dict[str, str] = field(default_factory=dict, repr=False)
    failed: bool = False
    late: Lateness = field(default_factory=Lateness)
    requests: tuple[RegradeRequest, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The result as plain data for `lmcourse grade --json`."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "score": self.score,
            "max_score": self.max_score,
            "exercises": dict(self.exercises),
            "reason": self.reason,
            "evidence": [one.to_json() for one in self.evidence],
            **self.late.to_json(),
            "regrade_requests": [request.to_json() for request in self.requests],
        }


def submission_result(
    student: str,
    assignment: str,
    graded: NotebookNode,
    points: Mapping[str, float],
    max_points: Mapping[str, float],
    late: Lateness,
) -> SubmissionResult:
    """The result of a submission that went through nbgrader.

    Args:
        student, assignment: whose, and of what.
        graded: the notebook as autograding left it.
        points, max_points: earned and most points by graded cell.
        late: how late it came.
    """
    earned, most = _by_exercise(points), _by_exercise(max_points)
    notes = graded.metadata.get(METADATA_KEY, {})
    reports = reports_in(graded)
    return SubmissionResult(
        student,
        assignment,
        max(sum(earned.values()) - late.penalty, 0.0),
        sum(most.values()),
        {name: earned[name] for name in most},
        " ".join(filter(None, [reason(graded, earned, most), str(late)])),
        notes.get("seed"),
        evidence_from_json(notes.get("evidence", [])),
        reports,
        _answers(graded, reports),
        late=late,
        requests=regrade_requests(graded),
    )


def ungraded_result(student: str, assignment: str, max_points: Mapping[str, float], why: str) -> SubmissionResult:
    """The result of a submission on which the grader failed."""
    most = _by_exercise(max_points)
    return SubmissionResult(student, assignment, 0.0, sum(most.values()), dict.fromkeys(most, 0.0), why, failed=True)


def reason(graded: NotebookNode, points: Mapping[str, float], max_points: Mapping[str, float]) -> str:
    """One line that explains the points of a graded notebook.

    Args:
        graded: as autograding left it.
        points, max_points: earned and most points by exercise.
    """
    problem = problem_of(graded)
    unfinished = [name for name in max_points if points[name] < max_points[name]]
    if not unfinished and not problem:
        return "Every check passed."
    if problem and not any(points.values()):
        return problem
    why = {name: text for name, text in _explanations(graded).items() if name in unfinished}
    parts = [problem] if problem else []
    parts.append(f"{len(max_points) - len(unfinished)} of {len(max_points)} exercises earn all their points.")
    explained = [name for name in unfinished if why.get(name)]
    parts += [f"{name}: {why[name]}" for name in explained[:MAX_EXPLAINED]]
    if len(explained) > MAX_EXPLAINED:
        parts.append(f"And {len(explained) - MAX_EXPLAINED} more; the feedback page shows each.")
    parts += _stand_ins(graded)
    return " ".join(parts)


def _stand_ins(graded: NotebookNode) -> list[str]:
    """A sentence for all exercises that were judged with the same answers of the course in place of the learner's."""
    judged: dict[tuple[str, ...], list[str]] = {}
    for name, report in reports_in(graded).items():
        if report.stand_ins:
            judged.setdefault(report.stand_ins, []).append(name)
    return [f"{', '.join(names)}: {stand_in_sentence(used).replace('J', 'j', 1)}" for used, names in judged.items()]


def _explanations(graded: NotebookNode) -> dict[str, str]:
    """A sentence for every exercise that has something to say."""
    put_back = graded.metadata.get(METADATA_KEY, {}).get("put_back", [])
    found = {}
    for cell in graded.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if cell.cell_type == "code" and name.startswith(CHECK_PREFIX):
            text = _explanation(cell.outputs)
            restored = "its check was deleted and has been put back. " if name in put_back else ""
            found[name.removeprefix(CHECK_PREFIX)] = restored + text
        elif cell.metadata.get("nbgrader", {}).get("task"):
            found[name] = "graded by hand."
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
        if error.ename in SAFE_ERRORS:
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


def _by_exercise(points: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(CHECK_PREFIX): value for name, value in points.items()}


def _answers(graded: NotebookNode, reports: Mapping[str, Report]) -> dict[str, str]:
    """The text of each answer that is one."""
    return {
        name: cell.source
        for cell in graded.cells
        if cell.cell_type == "code"
        and cell.metadata.get("nbgrader", {}).get("solution")
        and (name := cell.metadata["nbgrader"].get("grade_id")) in reports
        and reports[name].answered
    }
