"""The exercise that asks a scheme whether it is relative: does a score depend on the offset alone?"""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.alibi import alibi_bias
from lmcourse.chapters.positions.exercises.buckets import t5_bucket
from lmcourse.chapters.positions.exercises.rotary import rope
from lmcourse.chapters.positions.exercises.shaw import shaw_scores
from lmcourse.chapters.positions.exercises.sines import sinusoidal
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _is_relative(scores: Tensor, tolerance: float = 1e-4) -> bool:
    """Entry by entry: all scores of one offset, in each matrix of a batch."""
    for matrix in scores.reshape(-1, *scores.shape[-2:]).tolist():
        by_offset = defaultdict(list)
        for i, row in enumerate(matrix):
            for j, score in enumerate(row):
                by_offset[j - i].append(score)
        if any(max(group) - min(group) > tolerance for group in by_offset.values()):
            return False
    return True


def _vectors(random: Random, d: int) -> tuple[Tensor, Tensor]:
    """One query and one key, the same at every position."""
    return normal(random, 1, d), normal(random, 1, d)


def _added(random: Random, table: Tensor) -> Tensor:
    """Scores when a row of the table is added to the token at its position."""
    q, k = _vectors(random, table.shape[1])
    return (q + table) @ (k + table).T


def _rotated(random: Random, length: int, d: int, first: int = 0) -> Tensor:
    q, k = _vectors(random, d)
    positions = torch.arange(first, first + length)
    result: Tensor = rope.reference(q.expand(length, d), positions) @ rope.reference(k.expand(length, d), positions).T
    return result


def _shaw(random: Random, length: int, d: int, clip: int) -> Tensor:
    q, k = (each.expand(2, length, d) for each in _vectors(random, d))
    result: Tensor = shaw_scores.reference(q, k, normal(random, 2 * clip + 1, d))
    return result


def _alibi(length: int, slopes: Tensor) -> Tensor:
    result: Tensor = alibi_bias.reference(slopes, length, length)
    return result


def _t5(random: Random, length: int, bidirectional: bool) -> Tensor:
    offset = torch.arange(length) - torch.arange(length)[:, None]
    result: Tensor = normal(random, 32)[t5_bucket.reference(offset, bidirectional)]
    return result


def _waves(length: int, d: int) -> Tensor:
    result: Tensor = sinusoidal.reference(torch.arange(length), d)
    return result


def _only_key(random: Random, length: int) -> Tensor:
    return normal(random, 1, length).expand(length, length)


def _drift(length: int, step: float) -> Tensor:
    return torch.arange(length)[:, None] * step + torch.zeros(length)


def _relative_cases(random: Random) -> list[Case]:
    length = random.randint(5, 8)
    masked = _added(random, _waves(length, 8)).masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
    noisy = _rotated(random, length, 8) + 1e-6 * normal(random, length, length)
    return [
        case("relative schemes", _shaw(random, length, 4, 2)),
        case("relative schemes", _rotated(random, length, 16, first=random.randint(0, 99))),
        case("relative schemes", _t5(random, length, bidirectional=False)),
        case("absolute schemes", _added(random, normal(random, length, 6))),
        case("absolute schemes", _only_key(random, length)),
        case("masks", masked),
        case("masks", _alibi(length, torch.tensor([0.5, 0.125]))),
        case("rounding", noisy),
        case("more keys than queries", _rotated(random, length, 8)[2:4]),
        case("other tolerances", _drift(length, random.uniform(0.01, 0.012)), 0.1),
    ]


_SEEN = Random(4)
_HANKEL = torch.arange(4.0)[:, None] + torch.arange(4.0)
_ONE_SIDED = torch.stack([torch.ones(4, 4), _only_key(_SEEN, 4)])
_OUTER = torch.tensor([[2.0, 1.0, 5.0], [3.0, 2.0, 4.0], [1.0, 0.0, 2.0]])

is_relative = Exercise(
    "is_relative",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_is_relative,
    cases=[
        case("RoPE", _rotated(_SEEN, 5, 8)),
        case("sinusoidal, added", _added(_SEEN, _waves(5, 8))),
        case("learned, added", _added(_SEEN, normal(_SEEN, 5, 4))),
        case("Shaw's vectors", _shaw(_SEEN, 6, 4, 2)),
        case("T5's encoder", _t5(_SEEN, 6, bidirectional=True)),
        case("ALiBi with its mask", _alibi(5, torch.tensor([0.5, 0.25]))),
        case("ALiBi without a mask, both ways", -0.5 * (torch.arange(4.0)[:, None] - torch.arange(4.0)).abs()),
        case("only the key's position counts", _only_key(_SEEN, 4)),
        case("only the sum of both positions counts", _HANKEL),
        case("a constant main diagonal, and nothing else", _OUTER),
        case("one head is relative, the other is not", _ONE_SIDED),
        case("a slow drift, 0.00006 a token", _drift(5, 6e-5)),
    ],
    hidden_cases=_relative_cases,
    hints=[
        "All scores of one offset j − i lie on one diagonal: scores.diagonal(offset, -2, -1).",
        "Offsets run from −(s − 1) to t − 1. On each diagonal the largest and the smallest entry differ by at most "
        "the tolerance: .amax(-1) - .amin(-1).",
        "−∞ minus −∞ is NaN, and NaN > tolerance is False. So ask whether any spread is greater, and say no.",
    ],
    forbid=["torch.nn"],
)


def _spreads(scores: Tensor) -> list[Tensor]:
    rows, columns = scores.shape[-2:]
    diagonals = [scores.diagonal(offset, -2, -1) for offset in range(1 - rows, columns)]
    return [diagonal.amax(-1) - diagonal.amin(-1) for diagonal in diagonals]


@is_relative.misconception("You ask for symmetry. Past and future may differ: a relative score may be lopsided.")
def symmetric(scores: Tensor, tolerance: float = 1e-4) -> bool:
    square = scores[..., : scores.shape[-2]]
    return not ((square - square.transpose(-1, -2)).abs() > tolerance).any().item()


@is_relative.misconception("You compare rows. Rows that are equal mean that only the key's position counts.")
def equal_rows(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return not ((scores - scores[..., :1, :]).abs() > tolerance).any().item()


@is_relative.misconception("You look at the main diagonal only. Every offset has a diagonal of its own.")
def main_diagonal(scores: Tensor, tolerance: float = 1e-4) -> bool:
    diagonal = scores.diagonal(0, -2, -1)
    return not (diagonal.amax(-1) - diagonal.amin(-1) > tolerance).any().item()


@is_relative.misconception("You follow the diagonals from top right to bottom left. There i + j is constant.")
def anti_diagonals(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return _is_relative(scores.flip(-1), tolerance)


@is_relative.misconception("A mask is relative too. −∞ minus −∞ is NaN, and a comparison with NaN is False.")
def stumbles_over_masks(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return all(bool((spread <= tolerance).all()) for spread in _spreads(scores))


@is_relative.misconception("You ask for equality to the last bit. Rounding alone breaks that: use the tolerance.")
def to_the_last_bit(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return _is_relative(scores, 0.0)


@is_relative.misconception(
    "You compare each entry with its neighbour on the diagonal. Small steps add up: take largest minus smallest."
)
def neighbours_only(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return not ((scores[..., 1:, 1:] - scores[..., :-1, :-1]).abs() > tolerance).any().item()


@is_relative.misconception("You look at the first head only. All matrices of the batch have to pass.")
def first_matrix(scores: Tensor, tolerance: float = 1e-4) -> bool:
    return _is_relative(scores.reshape(-1, *scores.shape[-2:])[0], tolerance)
