"""Two known mistakes at once are never named wrongly: random pairs of slips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.recognition import recognise
from lmcourse.exercises.registry import all_exercises
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
