"""Compare the learner's answer with the reference on one case, and compute the points of groups of cases.

Each public case forms a group with the cases derived from it, and hidden cases with the same name form a group. A group
counts if all of its cases pass. If a constant answer such as `return True` would earn points, the groups that it passes
are merged with a group that it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import difference, equal
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.failure import NOT_PLAIN
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import Plain

ALWAYS_WRONG_EXCEPTIONS = (
    *("NotImplementedError", "RecursionError", "MemoryError", "TimeLimitExceeded", NOT_PLAIN),
    *("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError"),
)
"""Exceptions that are always wrong, even if the reference raises them: then the case itself has a mistake, such as a
missing import, and the printed solution fails it, too. Some of them are subclasses of RuntimeError."""


@dataclass(frozen=True, eq=False)  # outcomes hold tensors, which have no one truth value for ==
class Trial:
    """A case of an exercise, whether it is hidden, and the outcomes of the learner's answer and of the reference.

    `agreements` is for `recognition`: for each known mistake, whether its outcome agrees with the answer's.
    """

    exercise: Exercise
    case: Case
    hidden: bool
    outcome: Outcome
    expected: Outcome
    agreements: dict[Misconception, bool] = field(default_factory=dict, init=False)

    @cached_property
    def wrong(self) -> str | None:
        """The difference between the outcome and the expected one, in one line, or None."""
        return verdict(self.exercise, self.case, self.expected, self.outcome)

    @cached_property
    def edge(self) -> bool:
        """True if the inputs are special, the reference raises an exception, or the case is derived."""
        return self.case.special or bool(self.case.of) or self.expected.failure is not None

    @cached_property
    def breaks_down(self) -> bool:
        """True if the answer raises an exception or gives NaN or infinite numbers, and the reference does not."""
        return breaks_down(self.outcome, self.expected)


def breaks_down(outcome: Outcome, expected: Outcome) -> bool:
    """Return True if an outcome is an exception or has NaN or infinite numbers where the expected outcome has none."""
    if outcome.failure or expected.failure:
        known = outcome.failure is None or outcome.failure.kind in ("NotImplementedError", "TimeLimitExceeded")
        return not expected.failure and not known
    return any(found(outcome.value) and not found(expected.value) for found in (has_nan, has_infinite))


def has_nan(value: Plain) -> bool:
    """Return True if a number in a result is NaN."""
    return _has(value, torch.isnan)


def has_infinite(value: Plain) -> bool:
    """Return True if a number in a result is infinite."""
    return _has(value, torch.isinf)


def _has(value: Plain, found: Callable[[Tensor], Tensor]) -> bool:
    if isinstance(value, Tensor):
        return not value.is_meta and bool(found(value).any())
    if isinstance(value, list | dict):
        return any(_has(item, found) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and bool(found(torch.tensor(value)))


def verdict(exercise: Exercise, case: Case, expected: Outcome, outcome: Outcome) -> str | None:
    """Compare an outcome with the expected outcome; return the difference in one line, or None."""
    if exercise.task:
        return exercise.task.verdict(outcome)
    if misuse := misused(exercise, expected, outcome):
        return misuse
    if expected.failure:
        wanted = expected.failure.kind
        if outcome.failure:
            right = wanted in outcome.failure.kinds and outcome.failure.kind not in ALWAYS_WRONG_EXCEPTIONS
            raises = "" if outcome.failure.kind == NOT_PLAIN else "it raises "
            return None if right else f"expected {wanted}, but {raises}{outcome.failure}"
        return f"expected {wanted} to be raised, but it returns a value"
    if outcome.failure:
        return str(outcome.failure)
    if case.gradients:
        return _wrong_gradient(exercise, case, expected.value, outcome.value)
    right, received = exercise.wanted(case, expected.value), exercise.compared(case, outcome.value)
    if exercise.view and isinstance(right, str) and isinstance(received, str):
        return None if right == received else f"expected “{right}”, yours: “{received}”"
    return difference(right, received, exercise.tolerance, reveal=not exercise.value, labels=case.expressions)


def misused(exercise: Exercise, expected: Outcome, outcome: Outcome) -> str:
    """Return a few words on an input that an answer changed, or returned although the result must be new."""
    if changed := [name for name in outcome.changed if name not in expected.changed]:
        return f"it changes {changed[0]} in place: work on a copy"
    gave = exercise.new and not expected.failure and not outcome.failure
    if gave and (shared := [name for name in outcome.shared if name not in expected.shared]):
        return f"the result is not new: it is {shared[0]} or a part of it, or shares its memory"
    return ""


def _wrong_gradient(exercise: Exercise, case: Case, expected: Plain, received: Plain) -> str | None:
    """Compare gradients; None counts as zeros."""
    if not isinstance(received, list) or len(received) != len(expected):
        return "it has no gradients"
    for name, right, got in zip(case.gradients, expected, received, strict=True):
        if right is None or got is None:
            given = got if right is None else right
            if isinstance(given, Tensor) and given.any():
                missing = f"autograd cannot reach `{name}` from the result"
                return missing if got is None else f"the gradient at `{name}`: expected zeros, yours are not"
        elif wrong := difference(right, got, exercise.tolerance):
            return f"the gradient at `{name}`: {wrong}"
    return None


Group = list[int]
"""The indices of a group's cases in the report."""

Passes = Callable[[Trial], bool]

_known: WeakKeyDictionary[Exercise, dict[bool, list[Group]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Score:
    """The number of passing groups, the number of all groups, and the points."""

    passed: int
    total: int
    points: float


def groups_of(trials: Sequence[Trial]) -> list[Group]:
    """Return the groups of an exercise's public or of all cases, merged so that no constant answer earns a point.

    They do not depend on the outcomes of the answer.
    """
    exercise, hidden = trials[0].exercise, trials[-1].hidden
    known = _known.setdefault(exercise, {})
    if hidden not in known:
        known[hidden] = _by_name(trials) if exercise.value else _without_constants(trials)
    return known[hidden]


def score(trials: Sequence[Trial], passed: Sequence[bool], groups: Sequence[Group]) -> Score:
    """Return an answer's points, in proportion to the passing groups, rounded down to half points.

    An answer that fails more than half of the public cases earns nothing.
    """
    public = [ok for trial, ok in zip(trials, passed, strict=True) if not trial.hidden and not trial.case.of]
    right = sum(all(passed[place] for place in group) for group in groups)
    points = (2 * trials[0].exercise.points * right // len(groups)) / 2 if 2 * sum(public) >= len(public) else 0.0
    return Score(right, len(groups), points)


def constants_of(trials: Sequence[Trial]) -> list[Passes]:
    """Return a function for each expected value or exception: whether a constant answer with it is right in a case."""
    distinct: list[Trial] = []
    for trial in trials:
        if not any(_asks_the_same(other, trial) for other in distinct):
            distinct.append(trial)
    return [lambda trial, one=one: _asks_the_same(one, trial) for one in distinct]  # type: ignore[misc]


def _by_name(trials: Sequence[Trial]) -> list[Group]:
    groups: dict[str | int, Group] = {}
    names = [trial.case.name for trial in trials]
    for place, trial in enumerate(trials):
        origin = names.index(trial.case.of) if trial.case.of else place
        groups.setdefault(trial.case.name if trial.hidden else origin, []).append(place)
    return list(groups.values())


def _without_constants(trials: Sequence[Trial]) -> list[Group]:
    groups = _by_name(trials)
    # A constant that is right in all cases is a real answer: the exercise asks for one result and compares its
    # properties.
    constants = [passes for passes in constants_of(trials) if not all(map(passes, trials))]
    while earning := [one for one in constants if _earns(one, trials, groups)]:
        groups = _joined(groups, earning[0], trials)
    return groups


def _earns(passes: Passes, trials: Sequence[Trial], groups: Sequence[Group]) -> bool:
    return score(trials, [passes(trial) for trial in trials], groups).points > 0


def _joined(groups: Sequence[Group], passes: Passes, trials: Sequence[Trial]) -> list[Group]:
    """Return the groups after merging each group that a constant passes with one that it fails. A public group is
    merged with a public group.
    """
    right = [group for group in groups if all(passes(trials[place]) for place in group)]
    public = [group for group in right if not trials[group[0]].hidden]
    chosen = public or right
    others = [group for group in groups if group not in right]
    alike = [group for group in others if trials[group[0]].hidden is not bool(public)]
    partner = (alike or others)[0]
    merged = sorted(place for group in [*chosen, partner] for place in group)
    return sorted([merged, *(group for group in groups if group not in chosen and group != partner)])


def _asks_the_same(one: Trial, other: Trial) -> bool:
    """Return True if one case's expected result is right in the other case, too."""
    if one.expected.failure or other.expected.failure:
        kinds = [trial.expected.failure.kind for trial in (one, other) if trial.expected.failure]
        return len(kinds) == 2 and kinds[0] == kinds[1]
    exercise = one.exercise
    wanted, given = (exercise.compared(other.case, value) for value in (other.expected.value, one.expected.value))
    return equal(wanted, given, exercise.tolerance)
