"""The independent parts of a result, such as the values of a dict: which of them are right, and which known mistakes
explain one of them although another one is wrong for another reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmcourse.exercises.compare import Tolerance, difference
from lmcourse.exercises.exercise import PRAISE, Exercise, Misconception
from lmcourse.exercises.outcomes import Outcomes
from lmcourse.exercises.recognition import Recognised, same_numbers
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import Plain

MAX_PARTS = 6
"""Largest number of items of a result that count as independent parts; longer lists are sequences."""

Parts = dict[str, Plain]
Pair = tuple[Parts, Parts]
"""The expected and the received parts of a result."""


def parts_told(trials: Sequence[Trial], failing: Sequence[Trial], others: bool) -> str:
    """Return a sentence on the parts that are right in all of these cases and on those that are wrong in each failing
    one, or ""; `others` is True if hidden cases fail, too."""
    wrong = [_wrong(pair, trial.exercise.tolerance) for trial, pair in zip(failing, _pairs(failing), strict=False)]
    if not wrong:
        return ""
    names = [*_parts(failing[0].expected.value)]
    right = [name for name in names if not any(name in one for one in wrong)]
    always = [name for name in names if all(name in one for one in wrong)]
    if not right or not always:
        return ""
    where = f"all {len(trials)} cases" if len(failing) == len(trials) else "each of the cases that fail"
    every = "public case" if others else "case"
    return f"Of the results {_listed(right)} right in every {every}; {_listed(always)} wrong in {where}."


def recognise_parts(exercise: Exercise, trials: Sequence[Trial], table: Outcomes) -> Recognised | None:
    """Return known mistakes that explain some parts of an answer's results in every ordinary case, although other parts
    are wrong for other reasons; or None."""
    for deciding in (trials, [trial for trial in trials if not trial.hidden]):
        ordinary = [trial for trial in deciding if not trial.edge]
        if pairs := [] if exercise.view else _pairs(ordinary):
            explained = dict(_explaining(exercise, ordinary, pairs, table))
            only = {wrong: parts for wrong, parts in explained.items() if _fits_alone(wrong, parts, explained)}
            if mistakes := [*{wrong.sentence: wrong for wrong in only}.values()]:
                every = {name: None for pair in pairs for name in _wrong(pair, exercise.tolerance)}
                rest = [name for name in every if not any(name in parts for parts in only.values())]
                told = "\n".join(wrong.sentence for wrong in mistakes)
                both = Misconception("", told, mistakes[0].made, parts=tuple(mistakes))
                return Recognised((both,), (), f"Of the results {_listed(rest)} wrong, too." if rest else "")
    return None


def _explaining(
    exercise: Exercise, ordinary: Sequence[Trial], pairs: Sequence[Pair], table: Outcomes
) -> Iterator[tuple[Misconception, set[str]]]:
    """Yield the known mistakes that explain all parts that they make wrong, and these parts.

    There must be two different wrong values. A sentence that praises a part may be false beside another mistake.
    """
    tolerance = exercise.tolerance
    for wrong in exercise.misconceptions:
        found = set() if PRAISE.search(wrong.sentence) else _explained(wrong, ordinary, pairs, table)
        values = [
            [
                received[name]
                for expected, received in pairs
                if not same_numbers(expected[name], received[name], tolerance)
            ]
            for name in found
        ]
        if any(not same_numbers(of_part[0], other) for of_part in values for other in of_part[1:]):
            yield wrong, found


def _explained(wrong: Misconception, ordinary: Sequence[Trial], pairs: Sequence[Pair], table: Outcomes) -> set[str]:
    """Return the parts that a mistake makes wrong if an answer has the same values there; an empty set otherwise."""
    tolerance = table.exercise.tolerance
    found: list[set[str]] = []
    for trial, (expected, received) in zip(ordinary, pairs, strict=True):
        outcome = table.given(wrong, trial.case)
        guess = _parts(outcome.value)
        if outcome.changed or trial.outcome.changed or guess.keys() != expected.keys():
            return set()
        found.append(_wrong((expected, guess), tolerance))
        if not all(same_numbers(guess[name], received[name], tolerance) for name in found[-1]):
            return set()
    parts = set().union(*found)
    alike = all(_wrong(pair, tolerance) & parts == one for pair, one in zip(pairs, found, strict=True))
    return parts if alike else set()


def _fits_alone(wrong: Misconception, parts: set[str], explained: dict[Misconception, set[str]]) -> bool:
    return not any(parts & other and one.sentence != wrong.sentence for one, other in explained.items())


def _pairs(trials: Sequence[Trial]) -> list[Pair]:
    """Return the parts of each trial's result; an empty list unless all of these results have the same few parts."""
    pairs = [(_parts(trial.expected.value), _parts(trial.outcome.value)) for trial in trials]
    names = {frozenset(parts) for pair in pairs for parts in pair}
    single = any(trial.case.script is not None or trial.case.gradients for trial in trials)
    return pairs if not single and len(names) == 1 and 2 <= len(names.pop()) <= MAX_PARTS else []


def _parts(value: Plain) -> Parts:
    if isinstance(value, dict):
        return {f"`{key}`": item for key, item in value.items()}
    return {f"item {place}": item for place, item in enumerate(value)} if isinstance(value, list) else {}


def _wrong(pair: Pair, tolerance: Tolerance | None) -> set[str]:
    expected, received = pair
    return {name for name, value in expected.items() if difference(value, received[name], tolerance)}


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last} are" if first else f"{last} is"
