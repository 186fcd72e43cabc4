"""From outcomes to a report: cases passed, points earned, diagnosis.

The judge sees plain outcomes only; it runs no learner code. So it works the same whether the answer ran in this
process, under plain nbgrader, or in a locked room that sent its results back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from torch import Tensor

from lmcourse.exercises.compare import equal
from lmcourse.exercises.diagnosis import broken_rule, diagnose
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.trial import Trial, groups_of, score, verdict
from lmcourse.exercises.values import Plain
from lmcourse.report import CaseResult, Report
from lmcourse.text import one_line

Agrees = Callable[[Misconception, Trial], bool]
"""Whether a known wrong answer gives what the learner's answer gave."""


def judge(
    exercise: Exercise,
    trials: Sequence[Trial],
    *,
    hidden: bool = False,
    forbidden: Sequence[Use] = (),
    agrees: Agrees | None = None,
) -> Report:
    """The report on an answer.

    Args:
        exercise: what was asked.
        trials: its cases with their outcomes, public ones first.
        hidden: whether the hidden cases are among the trials, as in a grade.
        forbidden: what the exercise rules out and the answer's source refers to; what it used at run time is in the
            outcomes.
        agrees: for whoever knows already what the wrong answers give; by default they are run.
    """
    broken = broken_rule(forbidden, [use for trial in trials for use in trial.outcome.forbidden])
    results = [_result(exercise, trial) for trial in trials]
    failing = [trial for trial, result in zip(trials, results, strict=True) if not result.passed]
    earned = score(trials, [result.passed for result in results], groups_of(trials))
    named = _misconception(exercise, trials, failing, agrees or _agrees) if failing and not broken else None
    return Report(
        exercise=exercise.name,
        points=0.0 if broken else earned.points,
        max_points=exercise.points,
        hidden=hidden,
        cases=tuple(results),
        diagnosis=broken or (named.sentence if named else _diagnosis(exercise, trials, failing)),
        mistake=named.sentence if named else "",
        groups=(earned.passed, earned.total),
        notes=_notes([trial.outcome for trial in trials]),
        hints=tuple(exercise.hints) if failing or broken else (),
        to_come=() if hidden else tuple(case.name for case in exercise.hidden),
        answered=not all(_unanswered(trial.outcome, exercise) for trial in trials),
    )


def _result(exercise: Exercise, trial: Trial) -> CaseResult:
    """One case of the report."""
    wrong = trial.wrong
    call = "" if wrong is None or exercise.value else trial.case.call(exercise.name)
    return CaseResult(trial.case.name, wrong is None, wrong or "", call, trial.hidden)


def _diagnosis(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """Return what the public cases suggest. They are chosen to tell misconceptions apart."""
    public = [trial for trial in trials if not trial.hidden]
    seen = bool(exercise.view)  # then results differ for many reasons, and only one that is missing says something
    wrong = [trial for trial in failing if not trial.hidden and not (seen and trial.outcome.value is not None)]
    return diagnose(exercise, public, wrong)


def _unanswered(outcome: Outcome, exercise: Exercise) -> bool:
    if outcome.failure:
        return outcome.failure.kind == "NotImplementedError"
    return exercise.value and outcome.value is None


def _misconception(
    exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial], agrees: Agrees
) -> Misconception | None:
    """The known wrong answer that gives the same results on every case that failed, if there is just one.

    Where several do, it is the one that also agrees on most of the others; of two that fit as well as each other
    neither can be told. Results that many a mistake gives prove little: then all cases have to agree.
    """
    candidates = [wrong for wrong in exercise.misconceptions if all(agrees(wrong, trial) for trial in failing)]
    fits = [sum(agrees(wrong, trial) for trial in trials) for wrong in candidates]
    best = max(fits, default=0)
    if fits.count(best) != 1 or (best < len(trials) and not _telling(failing)):
        return None
    return candidates[fits.index(best)]


def _agrees(wrong: Misconception, trial: Trial) -> bool:
    exercise = trial.exercise
    guess = run_case(wrong.answer, trial.case, name=exercise.name, seconds=exercise.seconds)
    return agree_on(trial, guess)


def agree_on(trial: Trial, guess: Outcome) -> bool:
    """Whether what a known wrong answer gives in a trial's case is what the answer gave. Where both raise what is asked
    for, each may say it in words of its own."""
    if trial.expected.failure and trial.wrong is None:
        return verdict(trial.exercise, trial.case, trial.expected, guess) is None
    return agree(trial.exercise, guess, trial.outcome)


def _telling(failing: Sequence[Trial]) -> bool:
    """Whether the results are such as only one mistake gives: two wrong numbers that are not 0, 1 or infinite."""
    numbers = {
        received
        for trial in failing
        for expected, received in zip(_numbers(trial.expected.value), _numbers(trial.outcome.value), strict=False)
        if math.isfinite(received) and not math.isclose(expected, received, rel_tol=1e-4)
    }
    return len(numbers - {0, 1}) > 1


def _numbers(value: Plain) -> Iterator[float]:
    if isinstance(value, Tensor):
        yield from value.flatten().tolist() if not value.is_complex() else ()
    elif isinstance(value, list | dict):
        yield from chain.from_iterable(map(_numbers, value if isinstance(value, list) else value.values()))
    elif isinstance(value, int | float):
        yield value


def agree(exercise: Exercise, guess: Outcome, outcome: Outcome) -> bool:
    """Whether an outcome is what a known wrong answer gives: the same value or exception, the same inputs changed."""
    if outcome.failed_with("NotImplementedError") or guess.changed != outcome.changed:
        return False
    if guess.failure and outcome.failure:
        return _exception(guess.failure) == _exception(outcome.failure)
    if guess.failure or outcome.failure:
        return False
    return equal(guess.value, outcome.value, exercise.tolerance)


def _exception(failure: Failure) -> tuple[str, str]:
    """What can be compared: its class, and its message without what depends on names and on the moment."""
    message = (
        "" if failure.kind in ("TimeLimitExceeded", "RecursionError") else re.sub(r"^[\w.<>]+\(\)", "", failure.message)
    )
    return failure.kind, message


def _notes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return what the code printed and warned of, shortened."""
    printed = "".join(outcome.printed for outcome in outcomes).strip()
    warned = dict.fromkeys(text for outcome in outcomes for text in outcome.warned)
    notes = [f"It printed: {one_line(printed, 200)}"] if printed else []
    return (*notes, *(f"It warned: {text}" for text in list(warned)[:3]))
