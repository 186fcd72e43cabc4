"""Small matrices of scores, relative or not, that distinguish right from wrong Toeplitz tests."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case


def drift(length: int, step: float) -> Tensor:
    return torch.arange(length)[:, None] * step + torch.zeros(length)


def _by_offset(rows: int, columns: int) -> Tensor:
    """A relative matrix of integers, with a different one for each offset."""
    return 3.0 * (torch.arange(columns) - torch.arange(rows)[:, None])


def but(scores: Tensor, row: int, column: int, value: float) -> Tensor:
    """The same scores, with one entry replaced."""
    changed = scores.clone()
    changed[..., row, column] = value
    return changed


def fixed_cases() -> list[Case]:
    ends = torch.tensor([[0.0, 5.0], [7.0, 0.25]])
    around = torch.tensor([0.0, 0.2, -0.2]).diag()
    square, wide, tall = _by_offset(4, 4), _by_offset(2, 5), _by_offset(5, 2)
    batch = torch.stack([square, square + 1, but(square, 3, 1, 0.0), square - 1]).reshape(2, 2, 4, 4)
    nothing = torch.full((3, 3), -math.inf)
    return [
        case("one wrong entry", but(square, 3, 1, 0.0)),
        case("one wrong entry", but(square, 0, 2, 0.0)),
        case("one wrong entry", batch),
        case("several batch axes", batch[:1]),
        case("more keys than queries", wide),
        case("more keys than queries", but(wide, 1, 4, 0.0)),
        case("more queries than keys", tall),
        case("more queries than keys", but(tall, 4, 1, 0.0)),
        case("one query", torch.tensor([[1.0, 7.0, 3.0]])),
        case("one key", torch.tensor([[1.0], [7.0], [3.0]])),
        case("masks", nothing),
        case("masks", but(nothing, 1, 1, 0.0)),
        case("masks", but(nothing, 2, 2, 0.0)),
        case("masks", but(square, 3, 2, -math.inf)),
        case("at the tolerance", ends, 0.25),
        case("at the tolerance", ends.flip(0, 1), 0.25),
        case("beyond the tolerance", ends, 0.2),
        case("beyond the tolerance", ends.flip(0, 1), 0.2),
        case("beyond the tolerance", around, 0.25),
        case("rounding", drift(2, 7e-5)),
        case("beyond the tolerance", drift(2, 1.5e-4)),
        case("large scores", 1000.0 + drift(3, 0.01).double()),
    ]
