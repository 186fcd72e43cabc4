"""The work of a function is counted, views are none, and what counts it does not count as a call of the answer."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.exercises import Exercise, check_exercise, script
from lmcourse.exercises.work import largest_tensor, most_rows, multiplications, numbers_made


def test_largest_tensor_returns_the_largest_size() -> None:
    def squares(x: Tensor) -> Tensor:
        return (x[:, None] * x).sum(dim=0)

    assert largest_tensor(squares, torch.ones(7)) == largest_tensor(squares, torch.ones(7).double()) == 49


def test_a_view_allocates_no_storage() -> None:
    assert largest_tensor(lambda x: x[:, None].expand(7, 100) @ torch.ones(100), torch.ones(7)) == 100


def test_products_are_counted_with_their_rows() -> None:
    a, b = torch.ones(4, 3), torch.ones(3, 5)
    assert multiplications(torch.matmul, a, b) == multiplications(lambda: a[:, :, None] * b) == 4 * 3 * 5
    assert multiplications(lambda: 2 * a + a) == 0
    keys = torch.ones(6, 3)
    assert most_rows([keys], lambda: [each @ b for each in (2 * keys.double().float()).split(2)]) == 2
    assert most_rows([keys], lambda: (keys[:5] * a[0]).sum(dim=1)) == 5


def test_new_numbers_are_added_up() -> None:
    assert numbers_made(lambda x: (x[:, None] * x).sum(dim=0).add_(1).view(7, 1), torch.ones(7)) == 49 + 7


def test_a_watched_answer_must_not_use_the_package() -> None:
    lines = "from lmcourse.exercises.work import largest_tensor\nlargest_tensor(double, x)"
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
