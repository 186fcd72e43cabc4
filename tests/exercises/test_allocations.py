"""Allocations of a function are detected, views are not, and the detector does not count as a call of the answer."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.exercises import Exercise, check_exercise, script
from lmcourse.exercises.allocations import largest_tensor


def test_largest_tensor_returns_the_largest_size() -> None:
    def squares(x: Tensor) -> Tensor:
        return (x[:, None] * x).sum(dim=0)

    assert largest_tensor(squares, torch.ones(7)) == largest_tensor(squares, torch.ones(7).double()) == 49


def test_a_view_allocates_no_storage() -> None:
    assert largest_tensor(lambda x: x[:, None].expand(7, 100) @ torch.ones(100), torch.ones(7)) == 100


def test_a_watched_answer_must_not_use_the_package() -> None:
    lines = "from lmcourse.exercises.allocations import largest_tensor\nlargest_tensor(double, x)"
    exercise = Exercise(
        "double",
        points=1,
        minutes=1,
        difficulty=1,
        reference=lambda x: 2 * x,
        cases=[script("room", lines, x=torch.ones(3))],
    )
    assert check_exercise(exercise, lambda x: x + x).points == 1
    assert check_exercise(exercise, lambda x: (x[:, None] * torch.ones(3)).sum(1)).points == 0
