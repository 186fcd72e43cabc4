"""What grading knows of one submission. It travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lmcourse.grading.evidence import Evidence, read_evidence

if TYPE_CHECKING:
    from lmcourse.exercises.report import Report

Standing = Literal["solved", "partly", "wrong", "unanswered"]


@dataclass(frozen=True)
class Record:
    """One submission of one learner.

    Attributes:
        student: whose it is, as the class calls them. Any text.
        assignment: its id, as in "08-attention"; empty if the notebook was not recognised.
        reports: by exercise, with hidden cases. None at all means that the submission could not be graded.
        score, max_score: points earned and possible.
        reason: why it is not more, in one sentence.
        evidence: what honest work does not do.
        answers: a digest of the text of all answers; empty if it is not known.
    """

    student: str
    assignment: str
    reports: dict[str, Report]
    score: float
    max_score: float
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    answers: str = ""

    @property
    def graded(self) -> bool:
        """Whether its exercises could be judged."""
        return bool(self.reports)

    @property
    def began(self) -> bool:
        """Whether at least one exercise is answered."""
        return any(report.answered for report in self.reports.values())

    def standing(self, exercise: str) -> Standing:
        """How it does in one exercise: all of the points, some, none, or not answered. No report is no answer."""
        report = self.reports.get(exercise)
        if report is None or not report.answered:
            return "unanswered"
        if report.passed:
            return "solved"
        return "partly" if report.points > 0 else "wrong"

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "reports": {name: report.to_json() for name, report in self.reports.items()},
            "score": self.score,
            "max_score": self.max_score,
            "reason": self.reason,
            "evidence": [one.to_json() for one in self.evidence],
            "answers": self.answers,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The record that `to_json` told.

        Raises:
            ValueError, TypeError, KeyError: the data is something else.
        """
        from lmcourse.exercises.report import Report

        return cls(
            str(data["student"]),
            str(data["assignment"]),
            {str(name): Report.from_json(report) for name, report in data["reports"].items()},
            float(data["score"]),
            float(data["max_score"]),
            str(data["reason"]),
            read_evidence(data["evidence"]),
            str(data["answers"]),
        )
