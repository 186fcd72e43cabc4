"""Submissions to review by hand: evidence of tampering, and identical answers. None of it changes a mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmcourse.grading.class_report.statistics import has_begun
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


@dataclass(frozen=True)
class IdenticalAnswers:
    """Learners whose answers are the same: they have one digest. Groups are numbered from 1."""

    number: int
    digest: str
    students: tuple[str, ...]


def flagged_submissions(results: Sequence[SubmissionResult]) -> tuple[FlaggedSubmission, ...]:
    """The submissions with evidence; those with something the grader saw come first."""
    found = [FlaggedSubmission(result.student, _by_kind(result.evidence)) for result in results if result.evidence]
    return tuple(sorted(found, key=lambda flagged: (flagged.certainty, flagged.student)))


def _by_kind(evidence: Sequence[Evidence]) -> dict[EvidenceKind, tuple[Evidence, ...]]:
    groups = {kind: tuple(one for one in evidence if one.kind == kind) for kind in KIND_LABELS}
    return {kind: group for kind, group in groups.items() if group}


def identical_answers_in(results: Sequence[SubmissionResult]) -> tuple[IdenticalAnswers, ...]:
    """Groups of two or more learners with exactly the same answers, the largest first. Empty answers make no group."""
    groups: dict[str, dict[str, None]] = {}
    for result in results:
        if result.answers_digest and has_begun(result):
            groups.setdefault(result.answers_digest, {})[result.student] = None
    same = sorted(((len(group), digest) for digest, group in groups.items() if len(group) > 1), reverse=True)
    return tuple(IdenticalAnswers(number, digest, tuple(groups[digest])) for number, (_, digest) in enumerate(same, 1))
