"""`with your("rope"):` runs a block with the learner's answers, or with the course's, and says which and why."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmcourse.exercises import Exercise, case, checking, later_cells, script, value_exercise
from tests.exercises.toy import Counter, doubling

FAILS, NOT_WRITTEN = "yours does not pass its check yet", "yours is not written yet"
COURSE = "with the course's `{}`: {}\n"
STUB = "def double(x):\n    raise NotImplementedError\n"
WRONG = "def double(x):\n    return x * x\n"
RIGHT = "def double(x):\n    return x + x\n"
BLOCK = 'with your("double"):\n    found = double(torch.tensor([5.0])).tolist()\n'


@pytest.fixture(autouse=True)
def _exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exercises of a function, of a function that calls it, of a class and of a value, which `your` finds by name."""
    settings: dict[str, Any] = {"points": 1, "minutes": 1, "difficulty": 1}
    days = value_exercise("days", reference=lambda: 21.5, **settings)
    adds = [script("adds", "c = Counter()\nc.add(2)\nc.count"), script("starts", "Counter(3).count")]
    counter = Exercise("Counter", reference=Counter, cases=adds, **settings)
    counter.variant(Counter)
    four = Exercise("four", reference=lambda x: 4 * x, cases=[case("two", torch.ones(2))], uses=["double"], **settings)
    four.variant(lambda x: 2 * x + 2 * x)
    known = {one.name: one for one in (doubling(), four, counter, days)}
    monkeypatch.setattr(later_cells, "find_exercise", known.__getitem__)
    monkeypatch.setattr(checking, "_reports", {})


def cell(code: str) -> dict[str, Any]:
    """Run code as cells; return their names, which are global."""
    names: dict[str, Any] = {"__name__": "__main__", "your": later_cells.your, "torch": torch}
    exec(code, names)
    return names


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (RIGHT, "with your `double`\n"),
        (WRONG, COURSE.format("double", FAILS)),
        (STUB, COURSE.format("double", NOT_WRITTEN)),
        ("", COURSE.format("double", NOT_WRITTEN)),
        ("double = 3\n", COURSE.format("double", FAILS)),
        ("def double(x):\n    raise SystemExit\n", COURSE.format("double", FAILS)),
    ],
)
def test_block_runs_with_a_right_answer(answer: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = cell(answer + "before = globals().get('double')\n" + BLOCK)
    assert (names["found"], capsys.readouterr().out) == ([10.0], line)
    assert names.get("double") is names["before"], "after the block, the name is the learner's again"


def test_name_is_the_learners_again_after_an_error() -> None:
    names: dict[str, Any] = {"your": later_cells.your}
    with pytest.raises(ZeroDivisionError):
        exec(STUB + 'mine = double\nwith your("double"):\n    1 / 0\n', names)
    assert names["double"] is names["mine"]


def test_each_version_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, check = [], checking.check_exercise

    def counting(exercise: Exercise, answer: Any) -> Any:
        checked.append(answer)
        return check(exercise, answer)

    monkeypatch.setattr(checking, "check_exercise", counting)
    helper = "def helper(x):\n    return {} * x\ndef double(x):\n    return helper(x)\n"
    names = cell(helper.format(3) + BLOCK + BLOCK)
    assert len(checked) == 1
    exec("def helper(x):\n    return 2 * x\n" + BLOCK, names)
    assert len(checked) == 2, "another version of a function that the answer calls"


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        (RIGHT + "def four(x):\n    return double(double(x))\n", "with your `double` and `four`\n"),
        (WRONG + "def four(x):\n    return double(double(x))\n", f"with your `four`; {COURSE.format('double', FAILS)}"),
        (STUB + STUB.replace("double", "four"), "with the course's `double` and `four`: yours are not written yet\n"),
    ],
)
def test_called_answers_are_replaced_too(answers: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cell(answers + 'with your("four"):\n    found = four(torch.ones(1)).item()\n')["found"] == 4
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(("body", "reason"), [("pass", FAILS), ("raise NotImplementedError", NOT_WRITTEN)])
def test_a_class_is_replaced(body: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = f"class Counter:\n    def __init__(self, start=0):\n        {body}\n"
    assert cell(answer + 'with your("Counter"):\n    found = Counter(1).add(4).count\n')["found"] == 5
    assert capsys.readouterr().out == COURSE.format("Counter", reason)


@pytest.mark.parametrize(
    ("days", "line"),
    [
        ("21.5", "with your `days`\n"),
        ("20", COURSE.format("days", FAILS)),
        ("None", COURSE.format("days", NOT_WRITTEN)),
    ],
)
def test_a_value_is_replaced(days: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cell(f'days = {days}\nwith your("days"):\n    found = days\n')["found"] == 21.5
    assert capsys.readouterr().out == line


def test_a_copy_without_answers_prints_no_header_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(later_cells, "ReleasedExercise", Exercise)
    for answer, said in ((STUB, ""), (WRONG, "x  double\n"), (RIGHT, "x  double\n")):
        cell(answer + 'with your("double"):\n    print("x  double")\n    double(torch.ones(1))\n')
        first, *rest = capsys.readouterr().out.splitlines(keepends=True)
        assert (first.startswith("with your `double`"), "".join(rest)) == (True, said)
