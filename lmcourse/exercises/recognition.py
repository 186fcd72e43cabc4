"""Recognise a known mistake in the outcomes of an answer.

A mistake explains an answer if it gives the answer's result in every ordinary case: the same wrong result if the answer
fails, and a right result if the answer passes. Edge cases do not count, because two people who make the same mistake
often treat an empty input differently. If no mistake explains the failing hidden cases, too, one that explains the
public ones is enough, so that a grade says what the check has said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import Tolerance, equal, wrong_entries
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial, verdict
from lmcourse.exercises.values import Plain

Given = Callable[[Misconception, Case], Outcome]

MAX_NAMED = 2

RICH = 3
"""Number of wrong numbers in one result that are enough evidence for a mistake."""

NEARLY = Tolerance(1e-4, 1e-9)
"""Relative difference above which two numbers of any dtype differ by more than rounding."""


@dataclass(frozen=True)
class Recognised:
    """The known mistakes that explain an answer, and the names of the failing cases that they do not explain."""

    mistakes: tuple[Misconception, ...]
    unexplained: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The sentence of the mistake; for two mistakes, "… Or: …"."""
        return " Or: ".join(mistake.sentence for mistake in self.mistakes)

    @property
    def besides(self) -> str:
        """A sentence that names the failing cases which the mistake does not explain, or ""."""
        if not self.unexplained:
            return ""
        *first, last = (f"“{name}”" for name in self.unexplained)
        return f"{', '.join(first)} and {last} fail, too." if first else f"{last} fails, too."


def recognise(exercise: Exercise, trials: Sequence[Trial], given: Given) -> Recognised | None:
    """Return the known mistake that explains a failing answer, two that explain it equally well, or None."""
    public = [trial for trial in trials if not trial.hidden]
    named = _explaining(exercise, trials, trials, given)
    if named is None and any(trial.wrong is not None for trial in public):
        named = _explaining(exercise, trials, public, given)
    return named


def _explaining(
    exercise: Exercise, trials: Sequence[Trial], deciding: Sequence[Trial], given: Given
) -> Recognised | None:
    """Return the mistakes that agree with an answer in the ordinary ones among some deciding trials."""
    failing = [trial for trial in trials if trial.wrong is not None]
    ordinary = [trial for trial in deciding if not trial.edge]
    if not any(trial.wrong is not None for trial in ordinary):
        ordinary = list(deciding)  # if an answer fails only edge cases, they are used to recognise it
    ordinary.sort(key=lambda trial: trial.wrong is None)  # failing cases first, because they exclude most mistakes
    found: list[tuple[Misconception, list[Trial]]] = []
    for wrong in exercise.misconceptions:
        if not all(agree_on(trial, given(wrong, trial.case)) for trial in ordinary):
            continue
        other = [trial for trial in trials if not agree_on(trial, given(wrong, trial.case))]
        both = [trial for trial in ordinary if trial.wrong is not None and _fails(trial, given(wrong, trial.case))]
        doubtful = any(trial is one for trial in deciding for one in other)
        if both and (not doubtful or telling(both)) and (any_wrong_number(both) or _exactly(ordinary, wrong, given)):
            found.append((wrong, other))
    best = [(wrong, other) for wrong, other in found if len(other) == min(len(each) for _, each in found)]
    if not 1 <= len(best) <= MAX_NAMED:
        return None
    unexplained = [trial for trial in failing if all(any(trial is one for one in other) for _, other in best)]
    return Recognised(tuple(wrong for wrong, _ in best), tuple(dict.fromkeys(one.case.name for one in unexplained)))


def agree_on(trial: Trial, guess: Outcome) -> bool:
    """Return True if a known mistake has the same outcome in a trial's case as the answer.

    If the answer is right, the mistake must be right, too. If the answer is wrong, only the numbers are compared, not
    dtypes and containers.
    """
    if id(guess) not in trial.agreements:  # the outcome is kept with its id, so no other object gets this id
        trial.agreements[id(guess)] = guess, _agree_on(trial, guess)
    return trial.agreements[id(guess)][1]


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


def _exactly(trials: Sequence[Trial], wrong: Misconception, given: Given) -> bool:
    return all(
        agree(trial.exercise, given(wrong, trial.case), trial.outcome) for trial in trials if trial.wrong is not None
    )


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
    if a.device != b.device or a.is_complex() != b.is_complex():
        return torch.ones(a.shape, dtype=torch.bool)
    coarse, other = (a, b) if _bits(a) <= _bits(b) else (b, a)
    differ = wrong_entries(coarse, other, tolerance)
    return differ if a.dtype == b.dtype else differ & wrong_entries(coarse, other, None)


def _bits(tensor: Tensor) -> int:
    return torch.finfo(tensor.dtype).bits if tensor.is_floating_point() or tensor.is_complex() else 999


def telling(failing: Sequence[Trial]) -> bool:
    """Return True if wrong results are enough evidence: two different results, or one with several wrong numbers."""
    outcomes = [trial.outcome for trial in failing]
    if any(not _same_result(outcomes[0], outcome) for outcome in outcomes[1:]):
        return True
    return any(_wrong_numbers(trial) >= RICH for trial in failing if not trial.outcome.failure)


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
        yield from value.flatten().tolist()
    elif isinstance(value, list | dict):
        yield from chain.from_iterable(map(_numbers, value.values() if isinstance(value, dict) else value))
    else:
        yield value
