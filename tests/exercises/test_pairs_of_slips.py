"""Two mistakes at once, known or not, are never named wrongly: random pairs of slips, and slips beside a wrong part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lmcourse.exercises.compare import equal
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.recognition import recognise
from lmcourse.exercises.registry import all_exercises
from lmcourse.exercises.result_parts import recognise_parts
from lmcourse.exercises.rules import warm_up
from lmcourse.exercises.slips import EditError
from lmcourse.exercises.trial import Trial

pytestmark = pytest.mark.prove

PAIRS = 100

SLOW = ("gradient_noise", "learn", "fit", "forecasts")
"""Exercises whose cases train models, which would take minutes."""


def quick_exercises() -> list[Exercise]:
    return [exercise for exercise in all_exercises().values() if exercise.name not in SLOW]


def random_pairs() -> Iterator[tuple[Exercise, Misconception]]:
    """Yield pairs of slips, at most ten of an exercise, in random order."""
    random = Random(0)
    of_each = [[(exercise, pair) for pair in exercise.pairs] for exercise in quick_exercises()]
    some = [pair for pairs in of_each for pair in random.sample(pairs, min(4, len(pairs)))]
    yield from random.sample(some, len(some))


def trials_of(exercise: Exercise, pair: Misconception) -> list[Trial]:
    """Return the trials of a mistake or a pair as a learner's answer in the public cases."""
    table = outcomes_of(exercise)
    return [
        Trial(exercise, case, hidden, run_case(pair.answer, case, name=exercise.name, seconds=1), table.expected(case))
        for case, hidden in table.cases
        if not hidden
    ]


def test_random_pairs_are_named_by_their_own_sentences() -> None:
    """If a single mistake explains a pair's results as well, it is named alone, as for a learner."""
    warm_up()
    named: Counter[str] = Counter()
    wrongly, exercises = [], set()
    for exercise, pair in random_pairs():
        try:
            trials = trials_of(exercise, pair)
        except EditError:  # the two together are no Python
            continue
        found = recognise(exercise, trials, outcomes_of(exercise))
        if not any(trial.wrong for trial in trials) or (found and not found.mistakes[0].parts):
            named["right, or named as a single one"] += 1
            continue
        exercises.add(exercise.name)
        named["both" if found else "none"] += 1
        if found and {*found.sentence.split("\n")} != {*pair.sentence.split("\n")}:
            wrongly.append((exercise.name, pair.name, found.sentence))
        if named["both"] + named["none"] == PAIRS:
            break
    print(f"{PAIRS} pairs of {len(exercises)} exercises: {dict(named)}, {len(wrongly)} wrongly")
    assert wrongly == []
    assert len(exercises) >= 30
    assert named["both"] >= 0.7 * PAIRS


def parts_of(trial: Trial, value: Any) -> dict[Any, Any]:
    """Return the parts of a result by key or place; of a case that asks for one part, that part."""
    if trial.case.script is not None:
        return {re.split(r"[\[\]]", trial.case.script)[-2]: value} if re.search(r"\)\[.+\]$", trial.case.script) else {}
    return value if isinstance(value, dict) else dict(enumerate(value))


def beside_a_wrong_part(exercise: Exercise, wrong: Misconception) -> list[Trial]:
    """Return the ordinary trials of a mistake in which one part of the result that it leaves right is made wrong; an
    empty list if there is no such part."""
    trials = [trial for trial in trials_of(exercise, wrong) if not trial.edge]
    try:
        pairs = [[parts_of(one, value) for value in (one.expected.value, one.outcome.value)] for one in trials]
        keys = {key: None for right, _ in pairs for key in right}
        [key, *_] = [one for one in keys if all(equal(a[one], b[one]) for a, b in pairs if one in a)]
    except (TypeError, ValueError, KeyError):  # an exception, results with other parts, or no part is right
        return []
    return [
        replace(one, outcome=replace(one.outcome, value=_changed(one, given, key)))
        for one, (_, given) in zip(trials, pairs, strict=True)
    ]


def _changed(trial: Trial, given: dict[Any, Any], key: Any) -> Any:
    if trial.case.script is not None:
        return ["?"] if key in given else trial.outcome.value
    changed = given | {key: "?"}
    return changed if isinstance(trial.outcome.value, dict) else [*changed.values()]


def test_a_mistake_beside_a_wrong_part_has_its_own_sentence() -> None:
    warm_up()
    named, wrongly = Counter[str](), []
    for exercise in quick_exercises():
        if exercise.value or exercise.task or exercise.view:
            continue
        for wrong in exercise.misconceptions:
            trials = beside_a_wrong_part(exercise, wrong)
            if trials and (found := recognise_parts(exercise, trials, outcomes_of(exercise))):
                named[exercise.name] += 1
                wrongly += [(exercise.name, wrong.name)] if found.sentence != wrong.sentence else []
    assert wrongly == []
    assert len(named) >= 30
    assert named.total() >= 200
