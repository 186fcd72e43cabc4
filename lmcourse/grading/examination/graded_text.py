"""What a graded report says of a learner's results: nothing in their own words.

Feedback goes back to the learner. While their code is judged it sees the inputs of hidden cases, so whatever text or
number it may choose itself (the message of an exception, a wrong result) could carry them onto the page. A graded
report says what was expected and of what kind the result is; the check in the learner's own notebook says the rest.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.forbidden_names import matches
from lmcourse.exercises.outcome import PROFILED, Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import format_value
from lmcourse.report import CaseResult, Report

COURSE_KINDS = {
    "TimeLimitExceeded": "it is still running when its time is up",
    PROFILED.kind: PROFILED.message,
    "NotPlainError": "it returns an object, which is not a number, a string or a tensor",
}
"""Ways to fail that are no exceptions of Python's, but ours."""


def in_our_words(outcome: Outcome, rules: Sequence[str]) -> Outcome:
    """An outcome without what the answer's process says in words of its own on why it failed or broke a rule.

    The message of an exception stays, to be compared; `without_results` keeps it off the page.

    Args:
        outcome: from a learner's process.
        rules: the dotted names that the exercise rules out.
    """
    failure = outcome.failure and replace(outcome.failure, line="", number=0, cause="")
    broken = [rule for rule in rules if any(matches(name, (rule,)) for name in outcome.forbidden)]
    return replace(outcome, failure=failure, forbidden=tuple(broken))


def without_results(report: Report, trials: Sequence[Trial], *, value: bool) -> Report:
    """A report whose public cases tell what was expected, and not what came.

    Args:
        report: on these trials.
        trials: in the order of its cases.
        value: whether the answer is a value, whose expected one is not told either.
    """
    cases = [_without_result(case, trial, value) for case, trial in zip(report.cases, trials, strict=True)]
    return replace(report, cases=tuple(cases))


def _without_result(case: CaseResult, trial: Trial, value: bool) -> CaseResult:
    if case.passed or case.hidden:
        return case
    expected = trial.expected.failure.kind if trial.expected.failure else format_value(trial.expected.value)
    wanted = "" if value else f"expected {expected}: "
    return replace(case, message=f"{wanted}{_kind_of(trial.outcome)} (run this check in your notebook to see more)")


def _kind_of(outcome: Outcome) -> str:
    if outcome.failure:
        return COURSE_KINDS.get(outcome.failure.kind) or f"it raises {_exception_phrase(outcome.failure)}"
    if outcome.changed:
        return "it changes an input in place"
    return "it returns nothing" if outcome.value is None else "it returns something else"


def _exception_phrase(failure: Failure) -> str:
    """An exception as its kind, if that is one of Python's, and whether it has a message, whose very length could tell
    of a hidden case."""
    known = [kind for kind in failure.kinds if isinstance(getattr(builtins, kind, None), type)]
    kind = known[0] if known else "an exception"
    return f"{kind} with a message" if failure.message else kind
