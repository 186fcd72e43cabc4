"""Toy exercises of every kind, for tests that must not depend on a notebook."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises import Case, Exercise, case, value_exercise
from lmcourse.exercises.open_task import Band, OpenTask, Remark, Unfit

Answer = Callable[..., Any]


def _hidden(random: Random) -> list[Case]:
    return [case("other sizes", torch.tensor([random.random() for _ in range(size)])) for size in (3, 5)]


def doubling(**changes: Any) -> Exercise:
    """Return twice the tensor."""
    settings: dict[str, Any] = {
        "points": 2,
        "minutes": 1,
        "difficulty": 1,
        "reference": lambda x: 2 * x,
        "cases": [case("two numbers", torch.tensor([1.0, 2.0])), case("a negative one", torch.tensor([-3.0]))],
        "hidden_cases": _hidden,
        "hints": ["Add it to itself.", "2 * x"],
        "contiguous": "tests count its cases",
    }
    exercise = Exercise("double", **(settings | changes))

    @exercise.misconception("You square instead of doubling.")
    def squared(x: Tensor) -> Tensor:
        return x * x

    @exercise.misconception("You forget the sign.")
    def absolute(x: Tensor) -> Tensor:
        return 2 * x.abs()

    @exercise.variant
    def from_numbers(x: Tensor) -> Tensor:
        return torch.tensor([2 * number for number in x.tolist()])

    return exercise


def refuse_negative(answer: Answer) -> None:
    """Inspect an answer to the toy task."""
    if answer(0) < 0:
        raise Unfit("At 0 your answer is negative.")
    if answer(100) == 7:
        warnings.warn("At 100 your answer is 7.", Remark, stacklevel=1)


def mean_and_last(answer: Answer, seeds: list[int]) -> dict[str, float]:
    """Measure an answer to the toy task."""
    return {"mean": sum(map(answer, seeds)) / len(seeds), "last": answer(seeds[-1])}


def shrinking() -> Exercise:
    """Return an open task: return a number for a seed that is small for all seeds. The baseline returns the seed."""
    exercise = Exercise(
        "shrink",
        points=3,
        minutes=1,
        difficulty=1,
        reference=lambda seed: 0.1,
        cases=[case("seeds 0 to 2", seeds=[0, 1, 2])],
        hidden_cases=lambda _: [case("seeds 3 to 5", seeds=[3, 4, 5])],
        hints=["Divide it."],
        task=OpenTask(
            inspect=refuse_negative,
            measure=mean_and_last,
            baseline={"the seed": {"mean": 1.0, "last": 2.0}},
            finish={"mean": 0.5},
            bands=[Band(1, "it runs"), Band(1, at_most={"mean": 0.9}), Band(1, at_most={"mean": 0.5, "last": 1.0})],
        ),
    )

    @exercise.idea(1)
    def the_seed(seed: int) -> float:
        return seed

    @exercise.idea(3)
    def a_tenth(seed: int) -> float:
        return seed / 10

    exercise.edited_ideas(the_seed, {"twice as much": (1, "return seed → return 2 * seed")})
    exercise.slips(a_tenth, {"seed / 10 → seed / 10 - 1": "At 0 your answer is negative."})
    return exercise


class Counter:
    """The reference answer to an exercise whose answer is a class."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def add(self, amount: int) -> Counter:
        if amount < 0:
            raise ValueError("only forward")
        self.count += amount
        return self


def answering() -> Exercise:
    """Return an exercise that asks for six times seven."""
    exercise = value_exercise("answer", points=1, minutes=1, difficulty=1, reference=lambda: 42, hints=["6 · 7"])
    exercise.wrong_value(13, "You added.")
    return exercise
