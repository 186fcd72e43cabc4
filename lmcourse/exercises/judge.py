"""From outcomes to a report: cases passed, points earned, diagnosis.

The judge sees plain outcomes only; it runs no learner code. So it works the same whether the answer ran in this
process, under plain nbgrader, or in a locked room that sent its results back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import chain

from torch import Tensor

from lmcourse.exercises.compare import equal
from lmcourse.exercises.diagnosis import broken_rule, diagnose
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.trial import Trial, verdict
from lmcourse.exercises.values import Plain
from lmcourse.report import CaseResult, Report
from lmcourse.text import one_line

Agrees = Callable[[Misconception, Trial], bool]
"""Whether a known wrong answer gives what the learner's answer gave."""

CountGuesses = Callable[[Sequence[Trial]], int]
"""In how many of these cases one fixed value is right, at most."""

GUESSED = "It earns no points yet: one fixed answer to all cases would be right as often."
GUESSED_HIDDEN = "It earns no points yet: one fixed answer to all hidden cases would be right at least as often."
"""Of an answer with right results, none of which count: in the learner's check, and in a grade."""


def judge(
    exercise: Exercise,
    trials: Sequence[Trial],
    *,
    hidden: bool = False,
    forbidden: Sequence[str] = (),
    agrees: Agrees | None = None,
    count_guesses: CountGuesses | None = None,
) -> Report:
    """The report on an answer.

    Args:
        exercise: what was asked.
        trials: its cases with their outcomes, public ones first.
        hidden: whether this is the run of a grade, with the hidden cases among the trials.
        forbidden: ruled-out names found in the answer's source; those called at run time are in the outcomes.
        agrees: for whoever knows already what the wrong answers give; by default they are run.
        count_guesses: `most_right`, from whoever judges many answers to the same cases and remembers what it gives.
    """
    broken = broken_rule(forbidden, [name for trial in trials for name in trial.outcome.forbidden])
    results = [_result(exercise, trial) for trial in trials]
    failing = [trial for trial, result in zip(trials, results, strict=True) if not result.passed]
    counted, total = count_right(trials, [result.passed for result in results], count_guesses or most_right)
    guessed = ""
    if not counted and len(failing) < len(trials):
        guessed = GUESSED_HIDDEN if hidden else GUESSED
    named = _misconception(exercise, trials, failing, agrees or _agrees) if failing and not broken else None
    suggested = named.sentence if named else _diagnosis(exercise, trials, failing, graded=hidden)
    return Report(
        exercise=exercise.name,
        points=0.0 if broken else earned(exercise.points, counted, total),
        max_points=exercise.points,
        hidden=hidden,
        cases=tuple(results),
        diagnosis=broken or f"{suggested} {guessed}".strip(),
        notes=() if hidden else _notes(exercise, [trial.outcome for trial in trials], stuck=bool(failing)),
        to_come=() if hidden else tuple(exercise.categories),
        answered=not all(_unanswered(trial.outcome, exercise) for trial in trials),
    )


def count_right(trials: Sequence[Trial], passed: Sequence[bool], count_guesses: CountGuesses) -> tuple[Fraction, int]:
    """How many cases count as right, and of how many. Guessing counts for nothing.

    A case in which the answer has to refuse its input counts by the share of values that are right: an answer that
    always refuses has none.
    """
    results = list(zip(trials, passed, strict=True))
    counting = _counting(results)
    asked = _asked(counting)
    right = sum(ok for _, ok in asked)
    refused = sum(ok for _, ok in counting) - right
    if right == len(asked):
        return Fraction(right + refused), len(counting)
    if _is_guess(_asked(results), count_guesses):
        return Fraction(0), len(counting)
    return right + Fraction(refused * right, len(asked)), len(counting)


Results = list[tuple[Trial, bool]]
"""Trials, and whether each was passed."""


def _counting(results: Results) -> Results:
    """The cases that count: those that are there under every seed, so that no mark depends on the seed.

    The random ones show whether results are stored. They count for an answer that is right in all others, which loses
    by each, and for one that is right in none of them.
    """
    fixed, random = _by_seed(results)
    values = _asked(random)
    stored = bool(values) and not any(ok for _, ok in values)
    return results if stored or all(ok for _, ok in fixed) else fixed


def _is_guess(asked: Results, count_guesses: CountGuesses) -> bool:
    """Whether one fixed value would be right in as many cases, or none is right at all.

    In a grade that is asked of the hidden cases, as the results of the public ones can be stored; of those that are
    there under every seed, if there are any. Whoever is right in all random ones does not guess.
    """
    fixed, random = _by_seed([(trial, ok) for trial, ok in asked if trial.hidden])
    if fixed and random and all(ok for _, ok in random):
        return False
    unseen = fixed or random or asked
    right = sum(ok for _, ok in unseen)
    fewest = 1 if unseen[0][0].hidden else 2  # in the learner's check, one right value is no guess yet
    return right < len(unseen) and (right == 0 or count_guesses([trial for trial, _ in unseen]) >= max(right, fewest))


def _by_seed(results: Results) -> tuple[Results, Results]:
    """Those of the cases that are there under every seed, and those of the others."""
    fixed = [(trial, ok) for trial, ok in results if not trial.case.random]
    return fixed, [(trial, ok) for trial, ok in results if trial.case.random]


def _asked(results: Results) -> Results:
    """Those that ask for a value, and not for a refusal."""
    return [(trial, ok) for trial, ok in results if not trial.expected.failure]


def most_right(trials: Sequence[Trial]) -> int:
    """In how many of these cases one fixed value is right, at most."""
    tolerance = trials[0].exercise.tolerance
    values = [trial.exercise.seen(trial.case, trial.expected.value) for trial in trials]
    return max(sum(equal(other, value, tolerance) for other in values) for value in values)


def earned(points: int, passed: Fraction | int, total: int) -> float:
    """The share of the points for the share of the cases, rounded down to half a point.

    Rounding down makes every failed case cost something.
    """
    return (2 * points * passed // total) / 2


def _result(exercise: Exercise, trial: Trial) -> CaseResult:
    """One line of the report. A hidden case tells its category and whether it passed, never its inputs or values."""
    wrong = trial.wrong
    if trial.hidden:
        return CaseResult(trial.case.name, wrong is None, "", "", hidden=True)
    call = "" if wrong is None or exercise.value else trial.case.call(exercise.name)
    return CaseResult(trial.case.name, wrong is None, wrong or "", call)


def _diagnosis(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial], *, graded: bool) -> str:
    """What the public cases suggest: a sentence on a hidden one could give it away."""
    public = [trial for trial in trials if not trial.hidden]
    seen = bool(exercise.view)  # then results differ for many reasons, and only one that is missing says something
    wrong = [trial for trial in failing if not trial.hidden and not (seen and trial.outcome.value is not None)]
    return diagnose(exercise, public, wrong, graded=graded)


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


def _notes(exercise: Exercise, outcomes: Sequence[Outcome], *, stuck: bool) -> tuple[str, ...]:
    """What the code printed and warned of, shortened, and where help is. None of it may reach a graded cell."""
    printed = "".join(outcome.printed for outcome in outcomes).strip()
    warned = dict.fromkeys(text for outcome in outcomes for text in outcome.warned)
    notes = [f"It printed: {one_line(printed, 200)}"] if printed else []
    notes += [f"It warned: {text}" for text in list(warned)[:3]]
    if stuck and exercise.hints:
        notes.append(f'Stuck? `hint("{exercise.name}")` gives a nudge; run it again for the next.')
    return tuple(notes)
