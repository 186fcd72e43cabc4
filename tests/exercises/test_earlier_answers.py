"""If an answer calls an earlier one that is wrong, the report says that first, and nothing else."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

from lmcourse.exercises import Exercise, Report, case, checking
from lmcourse.exercises.judge import instead_of
from tests.exercises.toy import doubling

DOUBLE = "def double(x):\n    return {}\n"
RIGHT, WRONG = DOUBLE.format("x + x"), DOUBLE.format("x * x")
STUB = "def double(x):\n    raise NotImplementedError\n"
FOUR = "def four(x):\n    return double(double(x))\n"
THROUGH_HELPER = "def twice(x):\n    return double(double(x))\ndef four(x):\n    return twice(x)\n"
OWN_MISTAKE = "def four(x):\n    return double(x) * 3\n"


@pytest.fixture(autouse=True)
def _exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook with `double`, then `four`, which calls it, then `last`."""
    settings: dict[str, Any] = {"points": 1, "minutes": 1, "difficulty": 1, "cases": [case("two", torch.ones(2))]}
    four = Exercise("four", reference=lambda x: 4 * x, **settings)
    last = Exercise("last", reference=lambda x: 8 * x, **settings)
    known = {one.name: one for one in (doubling(), four, last)}
    monkeypatch.setattr(checking, "find_exercise", known.__getitem__)
    monkeypatch.setattr(checking, "notebook_of", lambda exercise: (*known.values(),))
    monkeypatch.setattr(checking, "_reports", {})


def checked(cells: str, answer: str = "four") -> Report:
    """Run code as a cell, and check an answer that it defines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    linecache.cache["<cell>"] = (len(cells), None, cells.splitlines(keepends=True), "<cell>")
    exec(compile(cells, "<cell>", "exec"), names)
    return checking.check(names[answer])


@pytest.mark.parametrize("calling", [FOUR, THROUGH_HELPER, OWN_MISTAKE])
def test_wrong_earlier_answer_is_reported_alone(calling: str) -> None:
    report = checked(WRONG + calling)
    assert report.sentences == ["This calls your `double`, which does not pass its own check yet:"]
    assert [(one.name, one.call[:7], one.passed) for one in report.cases] == [("two numbers", "double(", False)]
    assert (report.remarks, report.hints, report.answered) == ([], (), True)


@pytest.mark.parametrize(
    ("earlier", "told"),
    [(STUB, "This calls your `double`, which is not written yet."), ("", "is not defined in this kernel yet")],
)
def test_a_missing_earlier_answer_is_named(earlier: str, told: str) -> None:
    report = checked(earlier + FOUR)
    assert told in report.diagnosis
    assert (report.cases, report.answered) == ((), True)


@pytest.mark.parametrize("cells", [RIGHT + OWN_MISTAKE, WRONG + "def four(x):\n    return 3 * x\n"])
def test_own_mistake_is_reported_if_no_wrong_answer_is_called(cells: str) -> None:
    assert checked(cells).cases[0].name == "two"


def test_later_answers_are_not_blamed() -> None:
    later = "def last(x):\n    return x\ndef four(x):\n    return last(x)\n"
    assert checked(RIGHT + later).cases[0].name == "two"


def test_first_of_several_wrong_answers_is_named() -> None:
    cells = WRONG + FOUR + "def last(x):\n    return 2 * four(x)\n"
    assert "`double`" in checked(cells, "last").diagnosis


def test_answer_that_fails_only_hidden_cases_does_not_come_first() -> None:
    other = checking.check_exercise(doubling(), lambda x: 2 * x if len(x) < 3 else x, hidden=True)
    assert not other.passed
    assert instead_of(other, other) is None


def test_answer_that_breaks_a_rule_comes_first() -> None:
    broken = checking.check_exercise(doubling(forbid=["torch.add"]), lambda x: torch.add(x, x))
    report = instead_of(broken, broken)
    assert report
    assert "which does not pass its own check yet. This exercise asks you to do without `torch.add`" in report.diagnosis


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            "def helper(x):\n    raise NotImplementedError\ndef four(x):\n    return helper(x)\n",
            "It calls `helper`, which",
        ),
        (STUB.replace("double", "four"), "Nothing here yet"),
    ],
)
def test_unwritten_helper_is_named(cells: str, told: str) -> None:
    report = checked(cells)
    assert report.diagnosis.startswith(told)
    assert report.answered is told.startswith("It")
