"""The result of grading one submission: points, and one line that explains lost points."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.intake import Submission
from lmcourse.grading.notebooks import METADATA_KEY, NO_SCORE, NOT_RUN, grade_id, problem_of
from lmcourse.report import REPORT_MIME, Report, check_id, exercise_of, stand_in_sentence

MAX_EXPLAINED = 3

NOT_ANSWERED = "not answered."

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class Lateness:
    """Seconds after the due date and extension (0 if one of the times is not known), the points that nbgrader deducts,
    and sentences about the files (see `Submission.note`)."""

    seconds: float = 0.0
    penalty: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        """Return a text such as "Late by 2 h, penalty 3 points.", or ""."""
        points = "point" if self.penalty == 1 else "points"
        cost = f"penalty {self.penalty:g} {points}" if self.penalty else "no penalty"
        late = f"Late by {_duration(self.seconds)}, {cost}." if self.seconds > 0 else ""
        return " ".join(filter(None, [late, self.note]))


@dataclass(frozen=True)
class Mark:
    """The points of an exercise: what counts, what grading gives (None for a question), and whether a person decided.
    A mark by hand stays when the work is graded again."""

    points: float
    graded: float | None = None
    by_hand: bool = False

    @classmethod
    def of(cls, grade: Any) -> Mark:
        """Return the mark of nbgrader's `Grade`."""
        by_hand = grade.manual_score is not None or bool(grade.extra_credit)
        return cls(float(grade.score), grade.auto_score, by_hand)

    def __str__(self) -> str:
        """Return a text such as "1.5 (grading gives 3)"."""
        return f"{self.points:g}" if self.graded is None else f"{self.points:g} (grading gives {self.graded:g})"


@dataclass(frozen=True)
class SubmissionResult:
    """The result of one submission: its points, and an explanation for the learner."""

    student: str  # the name of the student's folder; "me" for a learner's own notebook
    assignment: str  # its id, such as "01-floating-point"; empty if the notebook was not recognised
    score: float
    max_score: float
    exercises: dict[str, float] = field(default_factory=dict)  # the points by exercise
    reason: str = ""
    reports: dict[str, Report] = field(default_factory=dict, repr=False)
    answers: dict[str, str] = field(default_factory=dict, repr=False)
    failed: bool = False  # True if the grader failed, so that the points have no meaning
    unread: bool = False  # True if there was no notebook, or it could not be read
    broke_off: str = ""  # why there is no notebook, or which cells were stopped
    edited: tuple[str, ...] = ()  # the exercises whose checks the learner edited; the original checks were put back
    late: Lateness = field(default_factory=Lateness)
    further: frozenset[str] = frozenset()  # the exercises that do not belong to the core of the assignment

    @classmethod
    def unrecognised(cls, submission: Submission) -> SubmissionResult:
        """Return the result of a submission that belongs to no assignment."""
        why = submission.problem
        return cls(submission.student, "", 0.0, 0.0, reason=why, unread=True, broke_off=why)

    @classmethod
    def ungraded(cls, submission: Submission, max_points: Mapping[str, float], why: str) -> SubmissionResult:
        """Return the result of a submission that the grader failed to grade."""
        most = {exercise_of(name): value for name, value in max_points.items()}
        nothing = dict.fromkeys(most, 0.0)
        return cls(submission.student, submission.assignment.id, 0.0, sum(most.values()), nothing, why, failed=True)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data for `lmcourse grade --json`."""
        plain = ("student", "assignment", "score", "max_score", "exercises", "reason", "broke_off")
        late = {"late_seconds": self.late.seconds, "late_penalty": self.late.penalty, "late": str(self.late)}
        return {name: getattr(self, name) for name in plain} | {"edited": list(self.edited)} | late


def submission_result(
    submission: Submission,
    graded: NotebookNode,
    marks: Mapping[str, Mark],
    possible: Mapping[str, float],
    late: Lateness,
) -> SubmissionResult:
    """Return the result of a submission, from its graded notebook and the marks and possible points by graded cell."""
    most = {exercise_of(name): points for name, points in possible.items()}
    earned = {exercise_of(name): mark.points for name, mark in marks.items()}
    by_hand = {exercise_of(name): mark for name, mark in marks.items() if mark.by_hand}
    notes, reports = graded.metadata.get(METADATA_KEY, {}), reports_in(graded)
    texts = {grade_id(cell): cell.source for cell in graded.cells if cell.cell_type == "code"}
    return SubmissionResult(
        submission.student,
        submission.assignment.id,
        max(sum(earned.values()) - late.penalty, 0.0),
        sum(most.values()),
        {name: earned[name] for name in most},
        " ".join(filter(None, [*_reason(graded, earned, most, by_hand), str(late)])),
        reports,
        {name: texts[name] for name, report in reports.items() if report.answered and name in texts},
        unread=bool(problem_of(graded)),
        broke_off=" ".join(filter(None, [problem_of(graded), *notes.get("broke_off", [])])),
        edited=tuple(_checks_and_tasks(graded, "edited")[0]),
        late=late,
        further=submission.assignment.further,
    )


def points_in(graded: NotebookNode) -> tuple[dict[str, float], dict[str, float]]:
    """Return the earned and possible points of a graded notebook by graded cell, as nbgrader computes them."""
    from nbgrader.utils import determine_grade

    earned, most = {}, {}
    for cell in graded.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("grade") or marks.get("task"):
            name = marks["grade_id"]
            points, most[name] = determine_grade(cell) if marks.get("grade") else (0.0, float(marks["points"]))
            earned[name] = float(points or 0.0)
    return earned, most


def read_report(data: Any) -> Report | None:
    """Return the report in the JSON of a cell's output, which only the grader writes; None if it is damaged."""
    try:
        report = Report.from_json(data)
        report._repr_html_()
    except Exception:  # JSON with an unexpected structure may raise many exceptions
        return None
    return report


def reports_in(graded: NotebookNode) -> dict[str, Report]:
    """Return the reports of a graded notebook by exercise."""
    found = {}
    for cell in graded.cells:
        for output in cell.get("outputs", []):
            report = read_report(output.get("data", {}).get(REPORT_MIME))
            if report and grade_id(cell) == check_id(report.exercise):
                found[report.exercise] = report
    return found


def _reason(
    graded: NotebookNode, points: Mapping[str, float], most: Mapping[str, float], by_hand: Mapping[str, Mark]
) -> Iterator[str]:
    """Yield sentences that explain the points of a graded notebook; the most important cause comes first."""
    notes, problem = graded.metadata.get(METADATA_KEY, {}), problem_of(graded)
    yield problem
    if problem and not any(points.values()):
        return
    yield notes.get("failed_cell", "")
    yield from notes.get("broke_off", [])
    absent = [exercise_of(name) for name in notes.get("absent", [])]
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        yield f"This is an older copy, or cells of it were deleted: it has no exercise {names}."
    if by_name := notes.get("by_name", []):
        yield f"Cells were made anew, so these answers were found by their names: {', '.join(by_name)}."
    if unfinished := [name for name in most if points[name] < most[name]]:
        yield f"{len(most) - len(unfinished)} of {len(most)} exercises earn all their points."
        full = [name for name, mark in by_hand.items() if mark.graded is None or mark.graded >= most.get(name, 0)]
        yield from _lost_points(graded, [name for name in unfinished if name not in absent and name not in full])
    else:
        yield "Every exercise has all its points." if by_hand else "Every check passed."
    if by_hand:
        yield f"Marks given by hand count: {', '.join(f'{name} {mark}' for name, mark in by_hand.items())}."
    judged: dict[tuple[str, ...], list[str]] = {}
    for name, report in reports_in(graded).items():
        if report.stand_ins:
            judged.setdefault(report.stand_ins, []).append(name)
    for used, exercises in judged.items():
        yield f"{', '.join(exercises)}: {stand_in_sentence(used).replace('J', 'j', 1)}"
    for note, done in (
        ("edited", "was edited, and the course's own was used"),
        ("put_back", "was deleted, and has been put back"),
    ):
        for kind, named in zip(("check cell", "question"), _checks_and_tasks(graded, note), strict=True):
            if named:
                yield f"The {kind} {done}: {', '.join(named)}."


def _lost_points(graded: NotebookNode, exercises: Collection[str]) -> Iterator[str]:
    """Yield why these exercises lost points: the first few wrong ones, then those that were not answered."""
    why = {name: text for name, text in _explanations(graded).items() if name in exercises and text}
    wrong = [f"{name}: {text}" for name, text in why.items() if text != NOT_ANSWERED]
    yield from wrong[:MAX_EXPLAINED]
    if len(wrong) > MAX_EXPLAINED:
        yield f"And {len(wrong) - MAX_EXPLAINED} more; the feedback page shows each."
    if not_answered := [name for name, text in why.items() if text == NOT_ANSWERED]:
        yield f"Not answered: {', '.join(not_answered)}."


def _checks_and_tasks(graded: NotebookNode, note: str) -> tuple[list[str], list[str]]:
    """Return the names of the exercises whose checks are in one of grading's notes, and of the tasks in it."""
    named = [str(name) for name in graded.metadata.get(METADATA_KEY, {}).get(note, [])]
    tasks = {grade_id(cell) for cell in graded.cells if cell.metadata.get("nbgrader", {}).get("task")}
    checks = [exercise_of(name) for name in named if name not in tasks]
    return checks, [name for name in named if name in tasks]


def _explanations(graded: NotebookNode) -> dict[str, str]:
    found = {}
    for cell in graded.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("task") or (marks.get("grade") and marks.get("solution")):
            found[marks["grade_id"]] = "graded by hand."
        elif marks.get("grade") and cell.cell_type == "code":
            found[exercise_of(marks["grade_id"])] = _explanation(cell.outputs)
    return found


def _explanation(outputs: list[NotebookNode]) -> str:
    for output in outputs:
        if output.output_type == "error":
            if output.ename == NOT_RUN:
                return ""  # the line already begins with the problem of the whole notebook
            text = str(output.evalue)
            said = text if output.ename == NO_SCORE else f"{output.ename}: {text}".removesuffix(": ")
            return f"{said.removesuffix('.')}."
        report = read_report(output.get("data", {}).get(REPORT_MIME))
        if report:
            if not report.answered:
                return NOT_ANSWERED
            return " ".join(report.sentences) or report.reckoning or _first_failure(report)
    return ""


def _first_failure(report: Report) -> str:
    """Return what the first failing case expected and got; the points, if it has no words."""
    said = next((f"{case.name}: {case.message}" for case in report.cases if not case.passed and case.message), "")
    return f"{said.removesuffix('.')}." if said else f"{report.points:g} of {report.max_points} points."


def _duration(seconds: float) -> str:
    """Return a duration in its two largest units: "2 h", "1 d 3 h", "25 min"."""
    left = max(round(seconds), 1)
    parts: list[str] = []
    for size, unit in UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
    return " ".join(filter(None, parts[:2]))
