"""The exercise on a test for relative schemes: does a score depend on the offset alone?"""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.alibi import alibi_bias
from lmcourse.chapters.positions.exercises.rotary import rope, speeds_of
from lmcourse.chapters.positions.exercises.sines import sinusoidal
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def added_scores(random: Random, table: Tensor) -> Tensor:
    """Scores of one query and one key when a row of the table is added to the token at its position."""
    q, k = normal(random, 2, 1, table.shape[1])
    return (q + table) @ (k + table).T


def rotated_scores(random: Random, length: int, d: int, first: int = 0) -> Tensor:
    places = torch.arange(first, first + length)
    q, k = (rope.reference(x.expand(length, d), places, speeds_of(d)) for x in normal(random, 2, 1, d))
    return q @ k.T


def offset_scores(random: Random, length: int, reach: int) -> Tensor:
    """Scores with a number for each offset, shared by all offsets beyond the reach, as in T5 and ALiBi."""
    numbers, place = normal(random, 2 * reach + 1), torch.arange(length)
    return numbers[(place - place[:, None]).clamp(-reach, reach) + reach]


def only_key_scores(random: Random, length: int) -> Tensor:
    return normal(random, 1, length).expand(length, length)


def _is_relative(scores: Tensor, tolerance: float = 1e-4) -> bool:
    """Compare all scores of one offset, entry by entry, in each matrix of a batch."""
    for matrix in scores.reshape(-1, *scores.shape[-2:]).tolist():
        by_offset = defaultdict(list)
        for i, row in enumerate(matrix):
            for j, score in enumerate(row):
                by_offset[j - i].append(score)
        if any(max(group) - min(group) > tolerance for group in by_offset.values()):
            return False
    return True


def _drift(length: int, step: float) -> Tensor:
    return torch.arange(length)[:, None] * step + torch.zeros(length)


def _by_offset(rows: int, columns: int) -> Tensor:
    """A relative matrix of integers, with a different one for each offset."""
    return 3.0 * (torch.arange(columns) - torch.arange(rows)[:, None])


def _but(scores: Tensor, row: int, column: int, value: float) -> Tensor:
    """The same scores, with one entry replaced."""
    changed = scores.clone()
    changed[..., row, column] = value
    return changed


def _relative_cases(random: Random) -> list[Case]:
    length = random.randint(5, 8)
    ends = torch.tensor([[0.0, 5.0], [7.0, 0.25]])
    around = torch.tensor([0.0, 0.2, -0.2]).diag()
    square, wide, tall = _by_offset(4, 4), _by_offset(2, 5), _by_offset(5, 2)
    batch = torch.stack([square, square + 1, _but(square, 3, 1, 0.0), square - 1]).reshape(2, 2, 4, 4)
    nothing = torch.full((3, 3), -math.inf)
    masked = added_scores(random, sinusoidal.reference(torch.arange(length), 8)).masked_fill(
        torch.ones(length, length).triu(1) > 0, -math.inf
    )
    return [
        case("one wrong entry", _but(square, 3, 1, 0.0)),
        case("one wrong entry", _but(square, 0, 2, 0.0)),
        case("one wrong entry", batch),
        case("several batch axes", batch[:1]),
        case("more keys than queries", wide),
        case("more keys than queries", _but(wide, 1, 4, 0.0)),
        case("more queries than keys", tall),
        case("more queries than keys", _but(tall, 4, 1, 0.0)),
        case("one query", torch.tensor([[1.0, 7.0, 3.0]])),
        case("one key", torch.tensor([[1.0], [7.0], [3.0]])),
        case("masks", nothing),
        case("masks", _but(nothing, 1, 1, 0.0)),
        case("masks", _but(nothing, 2, 2, 0.0)),
        case("masks", _but(square, 3, 2, -math.inf)),
        case("at the tolerance", ends, 0.25),
        case("at the tolerance", ends.flip(0, 1), 0.25),
        case("beyond the tolerance", ends, 0.2),
        case("beyond the tolerance", ends.flip(0, 1), 0.2),
        case("beyond the tolerance", 2 * around, 0.5),
        case("rounding", _drift(2, 7e-5)),
        case("beyond the tolerance", _drift(2, 1.5e-4)),
        case("large scores", 1000.0 + _drift(3, 0.01).double()),
        case("relative schemes", offset_scores(random, length, 2)),
        case("relative schemes", rotated_scores(random, length, 16, first=random.randint(0, 99))),
        case("relative schemes", offset_scores(random, length, length)),
        case("absolute schemes", added_scores(random, normal(random, length, 6))),
        case("absolute schemes", only_key_scores(random, length)),
        case("masks", masked),
        case("masks", _HALF_CAUSAL + 1),
        case("masks", alibi_bias.reference(torch.tensor([0.5, 0.125]), length, length)),
        case("rounding", rotated_scores(random, length, 8) + 1e-6 * normal(random, length, length)),
    ]


_SEEN = Random(4)
_ONE_SIDED = torch.stack([torch.ones(4, 4), only_key_scores(_SEEN, 4)])
_NOTHING, _NOISE = torch.full((3, 3), -math.inf), normal(Random(5), 3, 3)
_SMALL = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [4.0, 3.0, 0.0]])
_RELATIVE = torch.stack([_SMALL, _SMALL.T])
_OPPOSITE = torch.stack([_but(_SMALL, 2, 1, 5.0), _but(_SMALL, 2, 1, 1.0)])
_HALF_CAUSAL = torch.stack([_SMALL.masked_fill(torch.ones(3, 3).triu(1) > 0, -math.inf), _SMALL])

is_relative = Exercise(
    "is_relative",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_is_relative,
    cases=[
        case("RoPE", rotated_scores(_SEEN, 5, 8)),
        case("sinusoidal, added", added_scores(_SEEN, sinusoidal.reference(torch.arange(5), 8))),
        case("learned, added", added_scores(_SEEN, normal(_SEEN, 5, 4))),
        case("Shaw's vectors", torch.stack([offset_scores(_SEEN, 6, 2), offset_scores(_SEEN, 6, 2)])),
        case("T5's encoder", offset_scores(_SEEN, 6, 5)),
        case("ALiBi with its mask", alibi_bias.reference(torch.tensor([0.5, 0.25]), 5, 5)),
        case("ALiBi without a mask, both ways", -0.5 * (torch.arange(4.0)[:, None] - torch.arange(4.0)).abs()),
        case("only the key's position counts", only_key_scores(_SEEN, 4)),
        case("only the sum of both positions counts", torch.arange(4.0)[:, None] + torch.arange(4.0)),
        case(
            "a constant main diagonal, and nothing else",
            torch.tensor([[2.0, 1.0, 5.0], [3.0, 2.0, 4.0], [1.0, 0.0, 2.0]]),
        ),
        case("one head is relative, the other is not", _ONE_SIDED),
        case("one head is not relative, the other is", _ONE_SIDED.flip(0)),
        case("two heads, one too high where the other is too low", _OPPOSITE),
        case("a slow drift, 0.00006 a token", _drift(3, 6e-5)),
        case("two tokens that differ by 0.00007", _drift(2, 7e-5)),
        case("a wrong score in the future", _but(_SMALL, 0, 1, 9.0)),
        case("a wrong score in the past", _but(_SMALL, 1, 0, 9.0)),
        case("a hidden key beside visible ones", _but(_SMALL, 1, 0, -math.inf)),
        case("a hidden key beside scores of 0", _but(_SMALL, 1, 1, -math.inf)),
        case("spreads of 0.25, and a tolerance of 0.25", torch.tensor([[0.0, 5.0], [7.0, 0.25]]), 0.25),
        case("up by 0.2 and down by 0.2, and a tolerance of 0.25", torch.tensor([0.0, 0.2, -0.2]).diag(), 0.25),
        case("two queries, five keys", _by_offset(2, 5)),
        case("two queries, five keys, a wrong score of the last key", _but(_by_offset(2, 5), 1, 4, 0.0)),
        case("a head that is causal beside one that is not", _HALF_CAUSAL),
        case("two texts of two heads", torch.stack([_OPPOSITE, _OPPOSITE.flip(0)])),
        case("two texts of two heads, all relative", torch.stack([_RELATIVE, 2 * _RELATIVE])),
        case("a head that is all −∞ beside a head of noise", torch.stack([_NOTHING, _NOISE])),
    ],
    hidden_cases=_relative_cases,
    hints=[
        "All scores of one offset j − i lie on one diagonal: scores.diagonal(offset, -2, -1).",
        "Offsets run from −(s − 1) to t − 1. On each diagonal the largest and the smallest entry differ by at most "
        "the tolerance: .amax(-1) - .amin(-1).",
        "−∞ minus −∞ is NaN, and NaN > tolerance is False. So check whether any spread is greater, and negate that.",
    ],
)


for _loop in ("range(1 - rows, columns - 1)", "range(2 - rows, columns - 0)"):
    is_relative.equivalent_mutant(
        f"for offset in range(2 - rows, columns - 1): → for offset in {_loop}:",
        "A diagonal of one score is constant: whether the corners are looked at makes no difference.",
    )


@is_relative.variant
def spread_of_each_diagonal(scores: Tensor, tolerance: float = 1e-4) -> bool:
    rows, columns = scores.shape[-2:]
    for offset in range(1 - rows, columns):
        diagonal = scores.diagonal(offset, -2, -1)
        spread = diagonal.amax(-1) - diagonal.amin(-1)
        if (spread > tolerance).any():
            return False
    return True


is_relative.slips(
    spread_of_each_diagonal,
    {
        "rows, columns = scores.shape[-2:] → "
        "rows = columns = min(scores.shape[-2:])\n    scores = scores[..., :rows, :rows] ;; "
        "diagonal.amax(-1) - diagonal.amin(-1) → (diagonal - scores.diagonal(-offset, -2, -1)).abs()": "You require "
        "symmetry. Past and future may differ in a relative score.",
        "diagonal.amax(-1) - diagonal.amin(-1) → (scores - scores[..., :1, :]).abs()": "You compare rows. Rows that "
        "are equal mean that only the key's position counts.",
        "range(1 - rows, columns) → [0]": "You look at the main diagonal only. Every offset has its own diagonal.",
        "scores.diagonal → scores.flip(-1).diagonal": "You follow the diagonals from top right to bottom left. There i "
        "+ j is constant.",
        "(spread > tolerance).any() → not (spread <= tolerance).all()": "You reject a mask, which is relative, too. −∞ "
        "minus −∞ is NaN, and a comparison with NaN is False.",
        "> tolerance → > 0": "You require bitwise equality. Rounding alone breaks that: use the tolerance.",
        "diagonal.amax(-1) - diagonal.amin(-1) → diagonal.diff().abs()": "You compare each entry with its neighbour on "
        "the diagonal. Small steps add up: take largest minus smallest.",
        "rows, columns = → if scores.ndim > 2:\n        return any(spread_of_each_diagonal(matrix, tolerance) for "
        "matrix in scores.flatten(0, -3))\n    rows, columns =": "One relative head is enough for you. All matrices of "
        "the batch have to pass.",
        "diagonal.amax(-1) - diagonal.amin(-1) → diagonal.std(-1)": "You compare the standard deviation with the "
        "tolerance. It is smaller than largest minus smallest.",
        "scores.diagonal → scores.masked_fill(scores.isneginf(), 0.0).diagonal": "You replace −∞ by 0, so a hidden key "
        "looks like a score of 0. On one diagonal, −∞ beside a 0 is not constant.",
        "scores.diagonal → scores.reshape(-1, rows, columns)[0].diagonal": "You look at the first head only. All "
        "matrices of the batch have to pass.",
        "range(1 - rows, columns) → range(1 - rows, 1)": "You look at the past only. Offsets ahead of the query have "
        "diagonals, too.",
        "range(1 - rows, columns) → range(columns)": "You look at the future only. Offsets back from the query have "
        "diagonals, too.",
        "scores.diagonal → scores.reshape(-1, rows, columns).mean(dim=0).diagonal": "You average over the heads, where "
        "differences can cancel. Every matrix has to pass.",
        "(offset, -2, -1) → (offset, -2, -1).flatten()": "You compare the diagonals of different matrices with each "
        "other. Each head has its own constants: look for the largest and the smallest entry within one matrix.",
        "diagonal.amin → diagonal.nan_to_num(neginf=math.inf).amin": "You skip entries of −∞. A diagonal of only −∞ is "
        "constant, but one that mixes −∞ and numbers is not.",
        "if (spread > tolerance).any() → if not diagonal.isneginf().all() and not (spread <= tolerance).all()": "You "
        "skip a diagonal only if it is −∞ in every matrix. One head may be causal where another is not.",
        "range(1 - rows, columns) → range(1 - rows, rows)": "You stop at the offset s − 1. With more keys than "
        "queries, offsets go up to t − 1.",
        "(spread > tolerance).any() → spread.max() > tolerance": "A head that is all −∞ gives NaN, and the maximum "
        "over all heads is then NaN. Check every head separately.",
        "> tolerance → >= tolerance": "A spread of exactly the tolerance counts as constant: it is *at most* the "
        "tolerance.",
        "diagonal.amax(-1) - diagonal.amin(-1) → diagonal.diff().abs() ;; "
        "(spread > tolerance).any() → not (spread <= tolerance).all()": "You compare neighbours on the diagonal, so "
        "small steps add up; and −∞ minus −∞ is NaN, so you reject a mask.",
        "range(1 - rows, columns) → range(1 - columns, columns)": "You take the matrix to be square. With t keys and s "
        "queries the offsets go from −(s − 1) to t − 1.",
        "diagonal.amax(-1) - diagonal.amin(-1) → (diagonal - diagonal[..., :1]).abs()": "You compare with the first "
        "entry only. The largest and the smallest are farther apart.",
    },
)
