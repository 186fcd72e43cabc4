"""Submissions to review by hand: evidence of tampering. It changes no mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.examination_result import Evidence, EvidenceKind, EvidenceSource
from lmcourse.grading.result import SubmissionResult

KIND_LABELS: dict[EvidenceKind, str] = {
    "file": "Files outside its folder",
    "network": "The network",
    "process": "Other processes",
    "interpreter": "The inside of Python",
    "builtins": "What every program relies on",
    "protocol": "Messages that are no answers",
    "flood": "Far too much output",
    "crash": "A crash",
    "memory": "Far too much memory",
    "text": "Words in its cells",
}
"""What each kind of evidence is about, in a teacher's words."""

SOURCE_LABELS: dict[EvidenceSource, str] = {
    "seen": "seen by the grader",
    "told": "told by a hook in their process",
    "read": "read in the text; may never have run",
}
"""How each piece of evidence came to the grader, the most certain first."""


@dataclass(frozen=True)
class FlaggedSubmission:
    """A submission with evidence, grouped by its kind in the order of `KIND_LABELS`."""

    student: str
    found: dict[EvidenceKind, tuple[Evidence, ...]]

    @property
    def certainty(self) -> int:
        """The place in `SOURCE_LABELS` of its most certain piece."""
        order = list(SOURCE_LABELS)
        return min(order.index(one.source) for group in self.found.values() for one in group)


def flagged_submissions(results: Sequence[SubmissionResult]) -> tuple[FlaggedSubmission, ...]:
    """The submissions with evidence; those with something the grader saw come first."""
    found = [FlaggedSubmission(result.student, _by_kind(result.evidence)) for result in results if result.evidence]
    return tuple(sorted(found, key=lambda flagged: (flagged.certainty, flagged.student)))


def _by_kind(evidence: Sequence[Evidence]) -> dict[EvidenceKind, tuple[Evidence, ...]]:
    groups = {kind: tuple(one for one in evidence if one.kind == kind) for kind in KIND_LABELS}
    return {kind: group for kind, group in groups.items() if group}
