"""Test answers that are classes, with scripts of calls."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lmcourse.exercises import Exercise, case, check_exercise, script
from lmcourse.exercises.outcome import run_case


class Reference:
    """A reference whose name differs from the exercise's name."""

    def __init__(self, size: int) -> None:
        self.items: list[float] = []
        self.size = size

    def push(self, item: float) -> float | None:
        self.items.append(item)
        return self.items.pop(0) if len(self.items) > self.size else None

    def total(self) -> float:
        return sum(self.items)


def window(**changes: Any) -> Exercise:
    settings: dict[str, Any] = {
        "points": 2,
        "minutes": 1,
        "difficulty": 1,
        "reference": Reference,
        "cases": [
            script("adds up", "w = Window(2)\nw.push(1.0)\nw.push(2.0)\nw.total()"),
            script(
                "forgets",
                "w = Window(size)\nfor x in items:\n    last = w.push(x)\nlast\nw.total()",
                size=1,
                items=[1, 2],
            ),
        ],
        "hidden_cases": lambda random: [
            script("longer", "w = Window(3)\n[w.push(x) for x in items]\nw.total()", items=[random.random()] * 5)
        ],
    }
    exercise = Exercise("Window", **(settings | changes))

    @exercise.misconception("You never forget.")
    class NeverForgets(Reference):
        def push(self, item: float) -> None:
            self.items.append(item)

    return exercise


class Window(Reference):
    pass


def test_a_right_class_earns_all_points_under_any_name() -> None:
    assert check_exercise(window(), Window, hidden=True).passed
    assert check_exercise(window(), Reference, hidden=True).passed


def test_code_of_a_script_ends_with_the_line_that_differs() -> None:
    class Window(Reference):
        def total(self) -> float:
            return 2 * sum(self.items)

    report = check_exercise(window(), Window)
    assert report.cases[0].message == "expected 3.0, yours 6.0"
    assert report.cases[0].call == "w = Window(2)\nw.push(1.0)\nw.push(2.0)\nw.total()  # ← this differs"
    assert report.cases[1].message == "expected 2, yours 4"


def test_a_class_misconception_loses_points_and_is_named() -> None:
    [wrong] = window().misconceptions
    assert wrong.name == "NeverForgets"
    for hidden in (False, True):
        report = check_exercise(window(), wrong.answer, hidden=hidden, enforce=False)
        assert report.points < 2
        assert report.diagnosis == report.mistake == "You never forget."


def test_an_empty_class_earns_nothing() -> None:
    class Window:
        def __init__(self, size: int) -> None:
            raise NotImplementedError

        def push(self, item: float) -> float:
            raise NotImplementedError

    report = check_exercise(window(), Window)
    assert (report.points, report.answered) == (0, False)


def test_a_class_with_one_written_method_counts_as_written() -> None:
    class Window:
        def __init__(self, size: int) -> None:
            self.size = size

        def push(self, item: float) -> float:
            return self.total()

        def total(self) -> float:
            raise NotImplementedError

    report = check_exercise(window(), Window)
    assert (report.points, report.answered) == (0, True)
    assert report.diagnosis.startswith("`total` is not written yet: line ")
    assert len(report.failing()[0]) == 1
    assert not check_exercise(window(given_methods=["__init__", "push"]), Window).answered


def test_a_wrong_constructor_and_a_missing_method_are_reported() -> None:
    class Window:
        pass

    report = check_exercise(window(), Window)
    assert report.cases[0].message == "TypeError: Window() takes no arguments"
    message = check_exercise(window(cases=[script("it", "Window.total")]), Window).cases[0].message
    assert message.startswith("AttributeError: type object 'Window' has no attribute 'total'")


def test_a_line_that_makes_an_object_is_compared_by_class() -> None:
    made = script("it", "w = Window(1)\nw\nw.total()")
    assert run_case(Reference, made).failure is not None  # raises NameError, because the script calls the class Window
    assert run_case(Reference, made, name="Window").value[0].kind == "a Window"
    assert check_exercise(window(cases=[made]), Window).passed


def test_rules_apply_to_classes() -> None:
    class Window(Reference):
        def total(self) -> float:
            return torch.tensor(self.items).sum().item()

    class Plainly(Reference):
        def backward(self) -> float:
            return 0.0

        def total(self) -> float:
            return math.fsum(self.items) + self.backward()

    assert "without `torch.tensor`" in check_exercise(window(forbid=["torch.tensor"]), Window).diagnosis
    assert check_exercise(window(forbid=[".sum"]), Window).points == 0
    assert check_exercise(window(forbid=[".backward"]), Plainly).passed


@pytest.mark.parametrize("lines", ["1 +", "x = = 2"])
def test_a_script_that_is_not_python_is_rejected_at_once(lines: str) -> None:
    with pytest.raises(SyntaxError):
        script("it", lines)
    assert case("a case of a function has no lines", 1).expressions == ()


def test_output_of_a_script_is_not_output_of_the_answer() -> None:
    class Talking(Reference):
        def total(self) -> float:
            print("from the answer")
            return super().total()

    outcome = run_case(Talking, script("prints", "print('from the script')\nWindow(1).total()"), name="Window")
    assert outcome.printed == "from the answer\n"
