"""Detectors for answers that raise, or that do not raise where they should."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmcourse.exercises.evidence.evidence import Evidence, names
from lmcourse.exercises.evidence.meanings import meaning
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.trial import Trial


def raises(evidence: Evidence) -> str:
    """What the exceptions of the cases that fail mean, if it is the same for all."""
    failures = [trial.outcome.failure for trial in evidence.failing]
    found = {_meaning(failure) for failure in failures if failure}
    if len(found) != 1 or None in failures:
        return ""
    [sentence] = found
    return sentence or _own_raise(failures) or _always_there(evidence, failures)


def _meaning(failure: Failure) -> str:
    return "" if _raised_on_purpose(failure) else meaning(failure)


def _raised_on_purpose(failure: Failure) -> bool:
    return bool(re.match(r"(.*:\s*)?(raise|assert)\b", failure.line))


def _own_raise(failures: Sequence[Failure | None]) -> str:
    if all(failure and _raised_on_purpose(failure) for failure in failures):
        return "Your own code refuses these inputs, which are allowed: the condition before that line is too wide."
    return ""


def _always_there(evidence: Evidence, failures: Sequence[Failure | None]) -> str:
    places = {(failure.kind, failure.number) for failure in failures if failure and failure.line}
    if len(places) == 1 and len(failures) > 1 and not evidence.passing:
        return "Every case ends in the same line: what comes after it has not run yet."
    return ""


def not_refused(evidence: Evidence) -> str:
    """Bad input that is taken, or refused with another exception."""
    if not all(trial.expected.failure for trial in evidence.failing):
        return ""
    kinds = {trial.expected.failure.kind for trial in evidence.failing if trial.expected.failure}
    wanted = " or ".join(f"`{kind}`" for kind in sorted(kinds))
    others = "Every other case passes. " if evidence.passing else ""
    if not any(trial.outcome.failure for trial in evidence.failing):
        return f"{others}Input that makes no sense has to be refused: `raise` {wanted} in {names(evidence.failing)}."
    if all(_by_accident(trial) for trial in evidence.failing):
        return (
            f"{others}Bad input is met by an exception that happens to occur on the way. Look at the input first, and "
            f"`raise` {wanted}."
        )
    if all(trial.outcome.failure for trial in evidence.failing):
        return f"{others}Bad input is refused, but with another exception than the one asked for: `raise` {wanted}."
    return ""


def _by_accident(trial: Trial) -> bool:
    failure = trial.outcome.failure
    return failure is not None and bool(failure.line) and not _raised_on_purpose(failure)
