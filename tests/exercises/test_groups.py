"""Test points by groups of cases: partly right answers earn some, and constants earn none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lmcourse.exercises import Exercise, case, check_exercise
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.trial import Trial, constants_of, groups_of, score
from lmcourse.report import Report
from tests.exercises.toy import answering

Expected = Sequence[Any]
"""Expected results of cases: values, or classes of exceptions."""


def asking(public: Expected, hidden: Mapping[str, Expected] | None = None, points: int = 3) -> Exercise:
    """Return an exercise whose cases expect these values; hidden values are given by name."""
    named = [("hidden", name, value) for name, values in (hidden or {}).items() for value in values]
    values = [*public, *(value for _, _, value in named)]

    def reference(place: int) -> Any:
        if isinstance(values[place], type):
            raise values[place]
        return values[place]

    numbers = range(len(public), len(values))
    hidden_cases = [case(name, place) for (_, name, _), place in zip(named, numbers, strict=True)]
    cases = [case(f"case {place}", place) for place in range(len(public))]
    return Exercise("f", points, 1, 1, reference, cases, hidden_cases=lambda random: hidden_cases)


def trials_of(exercise: Exercise, hidden: bool = True) -> list[Trial]:
    """Return the trials of the reference on all cases."""
    cases = [(one, False) for one in exercise.cases] + [(one, True) for one in exercise.hidden if hidden]
    outcomes = [(one, held_back, run_case(exercise.reference, one)) for one, held_back in cases]
    return [Trial(exercise, one, held_back, outcome, outcome) for one, held_back, outcome in outcomes]


def without(exercise: Exercise, *wrong: int) -> Callable[[int], Any]:
    """Return an answer that is wrong only in these places."""
    return lambda place: "wrong" if place in wrong else exercise.reference(place)


def report(exercise: Exercise, *wrong: int, hidden: bool = True) -> Report:
    """Return the report on an answer that is wrong in these places."""
    return check_exercise(exercise, without(exercise, *wrong), hidden=hidden)


GROUPS: dict[str, tuple[Exercise, list[list[int]]]] = {
    "public cases alone, hidden ones by name": (
        asking([1, 2, 3], {"other": [4, 5], "bad input": [6]}),
        [[0], [1], [2], [3, 4], [5]],
    ),
    "one value is right in all cases": (asking([True, True], {"other": [True]}), [[0], [1], [2]]),
    "two of three public values are the same": (asking([True, True, False]), [[0, 1, 2]]),
    "a refusal beside values": (asking([1, 2, 3, ValueError]), [[0], [1], [2], [3]]),
    "refusals in half of the public cases": (asking([1, 2, ValueError, ValueError]), [[0, 2, 3], [1]]),
    "refusals of two kinds are two constants": (asking([1, 2, ValueError, KeyError]), [[0], [1], [2], [3]]),
    "truth values, public and hidden": (
        asking([True, False], {"true": [True, True], "false": [False], "both": [True, False]}),
        [[0, 1], [2, 3, 4], [5, 6]],
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_small_exercises(name: str) -> None:
    exercise, groups = GROUPS[name]
    assert groups_of(trials_of(exercise)) == groups


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("hidden", [False, True])
def test_no_constant_earns_points_where_cases_differ(name: str, hidden: bool) -> None:
    trials = trials_of(GROUPS[name][0], hidden)
    groups = groups_of(trials)
    earned = [score(trials, [passes(trial) for trial in trials], groups).points for passes in constants_of(trials)]
    assert sum(earned) == 0 or len(earned) == 1


@pytest.mark.parametrize(
    ("wrong", "groups", "points"),
    [
        ([], (6, 6), 3.0),
        ([4], (5, 6), 2.5),  # one of two hidden cases with the same name
        ([4, 5], (5, 6), 2.5),  # both hidden cases with the same name
        ([0], (5, 6), 2.5),
        ([0, 1], (4, 6), 2.0),  # half of the public cases fail
        ([0, 1, 6], (3, 6), 1.5),
        ([0, 1, 2], (3, 6), 0.0),  # more than half of the public cases fail
    ],
)
def test_points_are_the_fraction_of_groups_that_pass(wrong: list[int], groups: tuple[int, int], points: float) -> None:
    exercise = asking([1, 2, 3, 4], {"other": [5, 6], "bad input": [ValueError]})
    found = report(exercise, *wrong)
    assert (found.groups, found.points) == (groups, points)


@pytest.mark.parametrize(("points", "worth"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 2.5), (5, 3.5)])
def test_points_are_rounded_down_to_a_half(points: int, worth: float) -> None:
    """Five of seven groups pass."""
    assert report(asking(range(7), points=points), 1, 2, hidden=False).points == worth


def test_reckoning_counts_the_groups_that_pass() -> None:
    exercise = asking([1, 2, 3, 4], {"other": [5, 6], "bad input": [ValueError]})
    assert report(exercise, 4).reckoning == "5 of 6 groups of cases pass: 2.5 of 3 points."
    assert report(exercise, 0, 1, 2).reckoning == (
        "3 of 6 groups of cases pass and more than half of the public cases fail: 0 of 3 points."
    )
    assert report(exercise).reckoning == ""
    assert check_exercise(answering(), lambda: 41).reckoning == ""


def test_closing_counts_the_cases_that_grading_adds() -> None:
    several = asking([1, 2], {"other": [5, 6], "bad input": [ValueError]})
    assert report(several, hidden=False).closing == (
        "Grading adds 3 cases (other, bad input): `check(f, hidden=True)` shows them."
    )
    one = asking([1, 2], {"other": [5]})
    assert report(one, hidden=False).closing == "Grading adds 1 case (other): `check(f, hidden=True)` shows it."
    assert report(several).closing == ""
    assert report(asking([1, 2]), hidden=False).closing == ""
    assert check_exercise(answering(), lambda: 41).closing == ""


def test_a_value_has_no_hidden_cases() -> None:
    with pytest.raises(ValueError, match="no hidden cases"):
        Exercise("answer", 1, 1, 1, lambda: 42, [case("it")], hidden_cases=lambda random: [case("it")], value=True)
