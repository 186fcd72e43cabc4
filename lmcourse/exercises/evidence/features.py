"""Detectors for whole results: a returned input, always the same result, or one wrong part of several."""

from __future__ import annotations

from lmcourse.exercises.case_code import expressions_shown
from lmcourse.exercises.cases import Case
from lmcourse.exercises.evidence import Evidence
from lmcourse.exercises.trial import misused
from lmcourse.exercises.values import format_value, same


def input_misused(evidence: Evidence) -> str:
    """Detect that an input is changed in place, or returned where a new result is needed."""
    [said, *others] = {misused(trial.exercise, trial.expected, trial.outcome) for trial in evidence.failing}
    if others:
        changes = [each.startswith("it changes ") for each in (said, *others)]
        what = "changes an input in place" if all(changes) else "changes an input, or its result shares memory with one"
        return f"It {what}: work on a copy." if any(changes) else ""
    return f"{said[0].upper()}{said[1:]}."


def same_result_for_all(evidence: Evidence) -> str:
    """Detect that all public cases give the same result although their expected results differ."""
    trials = [*evidence.failing, *evidence.passing]
    first = trials[0]
    if len(trials) < 3 or all(same(trial.expected.value, first.expected.value) for trial in trials):
        return ""
    if any(trial.outcome.failure or not same(trial.outcome.value, first.outcome.value) for trial in trials):
        return ""
    return f"It gives {format_value(first.outcome.value)} in each of the {len(trials)} public cases."


def one_part_wrong(evidence: Evidence) -> str:
    """Detect that it is always the same part of a result that differs."""
    if not all(evidence.wrong_parts) or not any(len(parts or []) > 1 for parts in evidence.parts):
        return ""
    wrong = [{part.name for part in parts} for parts in evidence.wrong_parts]
    if len(wrong[0]) == 1 and all(found == wrong[0] for found in wrong):
        [name] = wrong[0]
        if any(_shown_alone(trial.case, name) for trial in evidence.failing):
            return ""
        own_call = len(name) > MAX_EXPRESSION_CHARS and f"{evidence.exercise.name}(" in name
        others = "the other is" if all(len(parts or []) == 2 for parts in evidence.parts) else "the others are"
        return "" if own_call else f"{ONE_PART} {name} is wrong; {others} right."
    return ""


def _shown_alone(case: Case, name: str) -> bool:
    """Return True if a part is of an expression of a script, and the code that a learner sees has no other one."""
    places = (place for place, one in enumerate(case.expressions) if name.startswith(f"`{one}`"))
    return any(expressions_shown(case, place) == 1 for place in places)


MAX_EXPRESSION_CHARS = 60

ONE_PART = "Of the results only"
