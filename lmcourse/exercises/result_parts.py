"""The independent parts of a result, such as the values of a dict: which of them are right, and which known mistakes
explain one of them although another one is wrong for another reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from lmcourse.exercises.cases import Case
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
    by_part = any(trial.case.script is not None for trial in trials)
    found: dict[str, list[bool]] = {}
    for trial, pair in zip(trials if by_part else failing, _pairs(trials if by_part else failing), strict=False):
        wrong = _wrong(pair, trial.exercise.tolerance)
        for name in pair[0]:
            found.setdefault(name, []).append(name in wrong)
    right = [name for name, wrong in found.items() if not any(wrong)]
    always = [name for name, wrong in found.items() if all(wrong)]
    if not right or not always:
        return ""
    every = "every public case" if others else "every case"
    where = every if by_part or len(failing) == len(trials) else "each of the cases that fail"
    return f"Of the results {_listed(right)} right in {every}; {_listed(always)} wrong in {where}."


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
        values = [_wrong_values(name, pairs, tolerance) for name in found]
        if any(not same_numbers(of_part[0], other) for of_part in values for other in of_part[1:]):
            yield wrong, found


def _wrong_values(name: str, pairs: Sequence[Pair], tolerance: Tolerance | None) -> list[Plain]:
    """Return the wrong values of a part, without those in which only dtypes and containers are wrong."""
    both = [(expected[name], received[name]) for expected, received in pairs if name in expected]
    return [given for right, given in both if not same_numbers(right, given, tolerance)]


def _explained(wrong: Misconception, ordinary: Sequence[Trial], pairs: Sequence[Pair], table: Outcomes) -> set[str]:
    """Return the parts that a mistake makes wrong if an answer has the same values there; an empty set otherwise."""
    tolerance = table.exercise.tolerance
    found: list[set[str]] = []
    for trial, (expected, received) in zip(ordinary, pairs, strict=True):
        outcome = table.of_mistake(wrong, trial.case)
        guess = _parts(trial.case, outcome.value)
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
    """Return the parts of each trial's result; an empty list unless all of these results have the same few parts, or
    each case asks for one part."""
    pairs = [(_parts(trial.case, trial.expected.value), _parts(trial.case, trial.outcome.value)) for trial in trials]
    names = {frozenset(parts) for pair in pairs for parts in pair}
    alike = len(names) == 1 or {*map(len, names)} == {1}
    alike = alike and all(expected.keys() == received.keys() for expected, received in pairs)
    return pairs if alike and 2 <= len(frozenset().union(*names)) <= MAX_PARTS else []


def _parts(case: Case, value: Plain) -> Parts:
    if case.gradients:
        return {}
    if case.script is not None:
        asked = _asked(case)
        return {asked: value[0]} if asked and isinstance(value, list) else {}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {_named(key): item for key, item in items}


def _named(key: object) -> str:
    return f"item {key}" if isinstance(key, int) else f"`{key}`"


def _asked(case: Case) -> str:
    """Return the part that a script asks for if it is one expression such as `f(x)["a"]`; otherwise ""."""
    nodes = [ast.parse(one, mode="eval").body for one in case.expressions]
    match nodes:
        case [ast.Subscript(ast.Call(), ast.Constant(key))]:
            return _named(key)
    return ""


def _wrong(pair: Pair, tolerance: Tolerance | None) -> set[str]:
    expected, received = pair
    return {name for name, value in expected.items() if difference(value, received[name], tolerance)}


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last} are" if first else f"{last} is"
