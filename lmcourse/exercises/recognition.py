"""Recognise a known mistake in the outcomes of an answer.

A mistake explains an answer if it gives the answer's result in every ordinary case: the same wrong result if the answer
fails, and a right result if the answer passes. Edge cases do not count, because two people who make the same mistake
often treat an empty input differently. If nothing explains an answer, up to half of the ordinary cases do not count
either: those in which only one of the two breaks down, by an exception or NaN, because the other has a guard there. If
no mistake explains the failing hidden cases, too, one that explains the public ones is enough, so that a grade says the
same as the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import process_time

import torch
from torch import Tensor

from lmcourse.exercises.compare import Tolerance, equal, wrong_entries
from lmcourse.exercises.edits import EditError
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.outcomes import Outcomes
from lmcourse.exercises.trial import Trial, breaks_down, verdict
from lmcourse.exercises.values import Plain

MAX_NAMED = 2

RICH = 3
"""Number of wrong numbers in one result that are enough evidence for a mistake."""

NEARLY = Tolerance(1e-4, 1e-9)
"""Relative difference above which two numbers of any dtype differ by more than rounding."""

PAIR_SECONDS, ALL_PAIRS_SECONDS = 0.2, 2.0
"""The time limits for two mistakes at once, in seconds: of one pair on a case, and the processor time of all pairs."""


@dataclass(frozen=True)
class Recognised:
    """The known mistakes that explain an answer, the failing trials that they do not explain, and a sentence on the
    parts of results that they do not explain."""

    mistakes: tuple[Misconception, ...]
    unexplained: tuple[Trial, ...]
    other_parts: str = ""

    @property
    def sentence(self) -> str:
        """The sentence of the mistake; for two that fit equally well, "… Or: …"; for two at once, a line for each."""
        return " Or: ".join(dict.fromkeys(mistake.sentence for mistake in self.mistakes))

    @property
    def also_wrong(self) -> str:
        """A sentence that names the failing cases or the parts which the mistake does not explain, or ""."""
        if not self.unexplained:
            return self.other_parts
        *first, last = dict.fromkeys(f"“{trial.case.name}”" for trial in self.unexplained)
        return f"{', '.join(first)} and {last} fail, too." if first else f"{last} fails, too."


def recognise(exercise: Exercise, trials: Sequence[Trial], table: Outcomes) -> Recognised | None:
    """Return the known mistake that explains a failing answer, two that explain it equally well, two at once, or
    None."""
    public = [trial for trial in trials if not trial.hidden]
    decisions = [trials]
    if len(public) < len(trials) and any(trial.wrong is not None for trial in public):
        decisions.append(public)
    singles = (_explaining(exercise, trials, deciding, table) for deciding in decisions)
    pairs = (_pair(exercise, trials, deciding, table) for deciding in decisions)
    guarded = (_explaining(exercise, trials, deciding, table, guarded=True) for deciding in decisions)
    return next(filter(None, chain(singles, pairs, guarded)), None)


def _explaining(
    exercise: Exercise, trials: Sequence[Trial], deciding: Sequence[Trial], table: Outcomes, *, guarded: bool = False
) -> Recognised | None:
    """Return the mistakes that agree with an answer in the ordinary ones among some deciding trials.

    If `guarded`, the answer or the mistake may break down in up to half of them.
    """
    ordinary = [trial for trial in deciding if not trial.edge]
    if not any(trial.wrong is not None for trial in ordinary):
        ordinary = list(deciding)  # if an answer fails only edge cases, they are used to recognise it
    # failing cases first, because they exclude most mistakes
    ordinary.sort(key=lambda trial: (trial.wrong is None, trial.breaks_down))
    found: list[tuple[Misconception, list[Trial]]] = []
    for wrong in exercise.misconceptions:
        if not _fits(wrong, ordinary, table, guarded=guarded):
            continue
        other = [trial for trial in trials if not _agrees(wrong, trial, table)]
        both = [
            trial
            for trial in ordinary
            if trial.wrong is not None
            and _agrees(wrong, trial, table)
            and _fails(trial, table.of_mistake(wrong, trial.case))
        ]
        doubtful = any(trial is one for trial in deciding for one in other if not _breaks_down(wrong, one, table))
        if not both or _only_guarded(wrong, both, ordinary, table):
            continue
        if (not doubtful or enough_evidence(both)) and (any_wrong_number(both) or _exactly(ordinary, wrong, table)):
            found.append((wrong, other))
    best = [(wrong, other) for wrong, other in found if len(other) == min(len(each) for _, each in found)]
    if not 1 <= len({wrong.sentence for wrong, _ in best}) <= MAX_NAMED:
        return None
    return _recognised(trials, best)


def _fits(wrong: Misconception, ordinary: Sequence[Trial], table: Outcomes, *, guarded: bool) -> bool:
    """Return True if a mistake agrees with an answer in these trials; if `guarded`, in those in which none of the two
    breaks down, and in at least half."""
    if not all(_agrees(wrong, one, table) or (guarded and _breaks_down(wrong, one, table)) for one in ordinary):
        return False
    return 2 * sum(_agrees(wrong, trial, table) for trial in ordinary) >= len(ordinary)


def _only_guarded(wrong: Misconception, both: Sequence[Trial], ordinary: Sequence[Trial], table: Outcomes) -> bool:
    """Return True if an answer is right in a case in which a mistake breaks down, and shares only break-downs and
    dtypes with it.

    Then the sentence of the mistake speaks of break-downs, and may be untrue.
    """
    right = any(trial.wrong is None and _breaks_down(wrong, trial, table) for trial in ordinary)
    return right and all(_breaks_down(wrong, trial, table) or _right_numbers(wrong, trial, table) for trial in both)


def _right_numbers(wrong: Misconception, trial: Trial, table: Outcomes) -> bool:
    """Return True if a known mistake gives the right numbers in a trial, whatever their dtype."""
    guess, expected = table.of_mistake(wrong, trial.case), trial.expected
    values = not (guess.failure or expected.failure or guess.changed)
    return values and same_numbers(guess.value, expected.value, trial.exercise.tolerance)


def _breaks_down(wrong: Misconception, trial: Trial, table: Outcomes) -> bool:
    """Return True if an answer or a known mistake breaks down in a trial."""
    seconds = PAIR_SECONDS if wrong.parts else None
    return trial.breaks_down or breaks_down(table.of_mistake(wrong, trial.case, seconds), trial.expected)


def _recognised(trials: Sequence[Trial], best: Sequence[tuple[Misconception, list[Trial]]]) -> Recognised:
    """Return mistakes, each with the trials in which it differs from the answer, as the explanation of an answer."""
    failing = [trial for trial in trials if trial.wrong is not None]
    unexplained = [trial for trial in failing if all(any(trial is one for one in other) for _, other in best)]
    names = {trial.case.name for trial in unexplained}
    return Recognised(
        tuple(wrong for wrong, _ in best), tuple(trial for trial in unexplained if trial.case.of not in names)
    )


def _pair(exercise: Exercise, trials: Sequence[Trial], deciding: Sequence[Trial], table: Outcomes) -> Recognised | None:
    """Return the only two slips that, made at once, give an answer's results in the ordinary ones among some trials.

    There are many pairs, so the evidence must be stronger than for one mistake: two different wrong results, no single
    mistake fits, each of the two is needed, and no value in an edge case contradicts them.
    """
    ordinary = [trial for trial in deciding if not trial.edge]
    failing = [trial for trial in ordinary if trial.wrong is not None]
    if not exercise.pairs or not enough_for_two(failing):
        return None
    if any(all(_agrees(wrong, trial, table) for trial in ordinary) for wrong in exercise.misconceptions):
        return None
    end = process_time() + ALL_PAIRS_SECONDS
    fitting = exercise.pairs
    failing.sort(key=_wrong_numbers, reverse=True)  # a result with many numbers excludes most pairs
    for trial in (*failing, *(trial for trial in ordinary if trial.wrong is None)):
        fitting = [pair for pair in fitting if process_time() < end and _agrees(pair, trial, table)]
    if process_time() >= end or len({pair.sentence for pair in fitting}) != 1:
        return None
    for pair in fitting:
        if _each_is_needed(pair, failing, table) and not any(_contradicts(pair, trial, table) for trial in deciding):
            return _recognised(trials, [(pair, [trial for trial in trials if not _agrees(pair, trial, table)])])
    return None


def _each_is_needed(pair: Misconception, failing: Sequence[Trial], table: Outcomes) -> bool:
    """Return True if some failing trial shows both parts of a pair, or if there is enough evidence for each.

    Otherwise one case may fit the one by chance, and another case the other. If one part alone breaks down in a trial
    and the answer does not, the answer may have a guard, which is no evidence for the other part.
    """
    one, other = pair.parts
    needs = [
        [trial for trial in failing if not _agrees(part, trial, table) and not _guards(part, trial, table)]
        for part in (other, one)
    ]
    together = any(trial is each for trial in needs[0] for each in needs[1])
    return together or all(of_one and enough_evidence(of_one) for of_one in needs)


def _guards(part: Misconception, trial: Trial, table: Outcomes) -> bool:
    return not trial.breaks_down and breaks_down(table.of_mistake(part, trial.case), trial.expected)


def _contradicts(pair: Misconception, trial: Trial, table: Outcomes) -> bool:
    """Return True if an answer and a pair both return a value in an edge case, and not the same one."""
    returned = not trial.outcome.failure and not table.of_mistake(pair, trial.case, PAIR_SECONDS).failure
    return trial.edge and returned and not _agrees(pair, trial, table) and not _breaks_down(pair, trial, table)


def enough_for_two(failing: Sequence[Trial]) -> bool:
    """Return True if failing trials are enough evidence for two mistakes at once: at least two different wrong results,
    none of which ran out of time."""
    ended = not any(trial.outcome.timed_out for trial in failing)
    return bool(failing) and ended and _results_differ(failing) and any_wrong_number(failing)


def _agrees(wrong: Misconception, trial: Trial, table: Outcomes) -> bool:
    """Return True if a known mistake has the same outcome in a trial's case as the answer.

    If the answer is right, the mistake must be right, too. If the answer is wrong, only the numbers are compared, not
    dtypes and containers.
    """
    if wrong not in trial.agreements:
        seconds = PAIR_SECONDS if wrong.parts else None
        try:
            trial.agreements[wrong] = _agree_on(trial, table.of_mistake(wrong, trial.case, seconds))
        except EditError:
            if not wrong.parts:
                raise
            trial.agreements[wrong] = False  # two slips together may make a text that is no Python
    return trial.agreements[wrong]


def _agree_on(trial: Trial, guess: Outcome) -> bool:
    if trial.wrong is None:
        return not _fails(trial, guess)
    if agree(trial.exercise, guess, trial.outcome):
        return True
    if guess.failure or trial.outcome.failure or guess.changed != trial.outcome.changed:
        return False
    expected, tolerance = trial.expected.value, trial.exercise.tolerance
    if not guess.changed and _fails(trial, guess) and same_numbers(guess.value, expected, tolerance):
        return same_numbers(trial.outcome.value, expected, tolerance)  # a wrong type does not explain wrong numbers
    return same_numbers(guess.value, trial.outcome.value, tolerance)


def agree(exercise: Exercise, guess: Outcome, outcome: Outcome) -> bool:
    """Return True if two outcomes have the same value or exception, and the same changed inputs."""
    if outcome.failed_with("NotImplementedError") or guess.changed != outcome.changed:
        return False
    if guess.failure and outcome.failure:
        return _same_exception(guess.failure, outcome.failure)
    if guess.failure or outcome.failure:
        return False
    return equal(guess.value, outcome.value, exercise.tolerance)


def any_wrong_number(failing: Sequence[Trial]) -> bool:
    """Return True if, in some of these trials, more than dtypes and containers is wrong."""
    return any(
        trial.outcome.failure
        or trial.expected.failure
        or trial.outcome.changed
        or not same_numbers(trial.expected.value, trial.outcome.value, trial.exercise.tolerance)
        for trial in failing
    )


def _exactly(trials: Sequence[Trial], wrong: Misconception, table: Outcomes) -> bool:
    failing = [trial for trial in trials if trial.wrong is not None]
    return all(agree(trial.exercise, table.of_mistake(wrong, trial.case), trial.outcome) for trial in failing)


def _fails(trial: Trial, guess: Outcome) -> bool:
    return verdict(trial.exercise, trial.case, trial.expected, guess) is not None


def _same_exception(guess: Failure, failure: Failure) -> bool:
    """Compare the classes of two exceptions, and their messages without names. If an answer raises on purpose, the
    message does not matter."""
    if guess.kind != failure.kind:
        return False
    on_purpose = re.search(r"\b(raise|assert)\b", failure.line) is not None
    if on_purpose or failure.kind in ("TimeLimitExceeded", "RecursionError"):
        return True
    first, second = (re.sub(r"^[\w.<>]+\(\)", "", one.message) for one in (guess, failure))
    return first == second


def same_numbers(a: Plain, b: Plain, tolerance: Tolerance | None = None) -> bool:
    """Return True if two results have the same numbers in the same shape; dtype and container may differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_numbers(value, b[key], tolerance) for key, value in a.items())
    first, second = _as_tensor(a), _as_tensor(b)
    if first is not None and second is not None:
        if type(a) is not type(b) and first.numel() == 0 == second.numel():
            return True  # an empty list does not show which axes it has
        return first.shape == second.shape and not _differ(first, second, tolerance).any()
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_numbers(one, other, tolerance) for one, other in zip(a, b, strict=True))
    return equal(a, b, tolerance)


def _as_tensor(value: Plain) -> Tensor | None:
    """Return a number or nested lists of numbers as one tensor; None for other values."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int | float | complex):
        return _packed(value)
    return _packed(value) if isinstance(value, list) and _all_numbers(value) else None


def _packed(value: Plain) -> Tensor | None:
    try:
        numbers = torch.tensor(value)
        return torch.tensor(value, dtype=torch.float64) if numbers.is_floating_point() else numbers
    # lists of different lengths, or an int with more than 64 bits
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _all_numbers(value: Plain) -> bool:
    return all(map(_all_numbers, value)) if isinstance(value, list) else isinstance(value, bool | int | float)


def _differ(a: Tensor, b: Tensor, tolerance: Tolerance | None) -> Tensor:
    """Return a mask of entries that differ by more than the exercise, or the coarser dtype, allows."""
    if a.is_meta or a.device != b.device or a.is_complex() != b.is_complex():
        return torch.ones(a.shape, dtype=torch.bool)
    coarse, other = (a, b) if _bits(a) <= _bits(b) else (b, a)
    differ = wrong_entries(coarse, other, tolerance)
    return differ if a.dtype == b.dtype else differ & wrong_entries(coarse, other, None)


def _bits(tensor: Tensor) -> int:
    return torch.finfo(tensor.dtype).bits if tensor.is_floating_point() or tensor.is_complex() else 999


def enough_evidence(failing: Sequence[Trial]) -> bool:
    """Return True if wrong results are enough evidence: two different results, or one with several wrong numbers."""
    return _results_differ(failing) or any(
        _wrong_numbers(trial) >= RICH for trial in failing if not trial.outcome.failure
    )


def _results_differ(failing: Sequence[Trial]) -> bool:
    return any(not _same_result(failing[0].outcome, trial.outcome) for trial in failing[1:])


def _same_result(a: Outcome, b: Outcome) -> bool:
    if a.failure or b.failure:
        return a.failure is not None and b.failure is not None and a.failure.kind == b.failure.kind
    return same_numbers(a.value, b.value)


def _wrong_numbers(trial: Trial) -> int:
    expected, received = trial.expected.value, trial.outcome.value
    if isinstance(expected, Tensor) and isinstance(received, Tensor) and expected.shape == received.shape:
        return int(_differ(expected, received, trial.exercise.tolerance).sum())
    pairs = zip_longest(_numbers(expected), _numbers(received))
    return sum(not equal(a, b, trial.exercise.tolerance or NEARLY) for a, b in pairs)


def _numbers(value: Plain) -> Iterator[Plain]:
    if isinstance(value, Tensor):
        yield from () if value.is_meta else value.flatten().tolist()
    elif isinstance(value, list | dict):
        yield from chain.from_iterable(map(_numbers, value.values() if isinstance(value, dict) else value))
    else:
        yield value
