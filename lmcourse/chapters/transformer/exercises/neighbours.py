"""The exercise on the order of features in published weights."""

from __future__ import annotations

from random import Random

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def with_einops(weight: Tensor, d_head: int) -> Tensor:
    if d_head % 2 or len(weight) % d_head:
        raise ValueError("the width of a head must be even and divide the rows")
    return rearrange(weight, "(head half pair) d -> (head pair half) d", half=2, pair=d_head // 2)


def _numbered(rows: int, columns: int = 1) -> Tensor:
    return torch.arange(float(rows * columns)).reshape(rows, columns)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        case("other sizes", normal(fixed, 24, 5), 8),
        case("other sizes", normal(fixed, 6, 6), 6),
        case("other sizes", normal(fixed, 12, 12), 6),
        case("heads of two features", normal(fixed, 6, 3), 2),
        case("one large head", normal(fixed, 16, 2), 16),
        case("other formats", normal(fixed, 12, 2, dtype=torch.float16), 6),
        case("other formats", normal(fixed, 16, 2, dtype=torch.bfloat16), 8),
        case("heads that cannot be", normal(fixed, 15, 2), 5),
        case("heads that cannot be", normal(fixed, 14, 2), 4),
        case("heads that cannot be", normal(fixed, 4, 2), 8),
        script("the matrix stays", "pair_neighbours(weight, 6)\nweight", weight=normal(fixed, 12, 2)),
        *(case("other sizes", normal(random, 3 * d, 4), d) for d in random.sample((8, 10, 14, 16, 20, 22, 26, 28), 3)),
    ]


pair_neighbours = Exercise(
    "pair_neighbours",
    points=2,
    minutes=6,
    difficulty=2,
    reference=with_einops,
    cases=[
        case("one head of six", _numbered(6), 6),
        case("two heads of four", _numbered(8), 4),
        case("two heads of six, two columns", _numbered(12, 2), 6),
        case("as many columns as rows", _numbered(6, 6), 6),
        case("heads of two stay as they are", _numbered(6), 2),
        case("an odd width", _numbered(6), 3),
        case("rows left over", _numbered(10), 4),
        case("in half precision", _numbered(8).half(), 4),
        script("the matrix stays", "pair_neighbours(weight, 6)\nweight", weight=_numbered(6)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Do one head of six rows by hand. Which row belongs in place 0, which in place 1, which in place 2?",
        "The rows of a head are two halves. Interleave them: the first row of the first half, the first of the second "
        "half, the second of the first half, and so on.",
        'With einops: the rows are "(head half pair)" and become "(head pair half)", with half=2.',
    ],
)


pair_neighbours.variant(with_einops)
pair_neighbours.slips(
    with_einops,
    {
        "(head half pair) d -> (head pair half) d → (head pair half) d -> (head half pair) d": "You apply the inverse "
        "order, which separates neighbours. Row 0 and row d_head/2 must become neighbours.",
        "pair=d_head // 2 → pair=len(weight) // 2": "You pair rows across the whole matrix. Both rows of a pair belong "
        "to one head.",
        'return rearrange → weight = weight.T\n    if len(weight) % d_head:\n        raise ValueError(f"{len(weight)} '
        'rows in heads of {d_head}")\n    return rearrange ;; // 2) → // 2).T || rearrange(weight → rearrange(weight.T '
        ';; // 2) → // 2).T || return rearrange(weight, "(head half pair) d -> (head pair half) d", half=2, '
        "pair=d_head // 2) → order = torch.arange(len(weight)).unflatten(0, (-1, 2, d_head // 2)).mT.flatten()\n    "
        "return weight[:, order]": "A head's features are *rows* of this matrix (out, in). You moved columns.",
        "// 2) → // 2).unflatten(0, (-1, 2)).flip(1).flatten(0, 1)": "The order within a pair is reversed, so the "
        "rotation would turn the other way.",
        "rearrange(weight → torch.cat([rearrange(weight[:d_head] ;; // 2) → // 2), weight[d_head:]])": "Only the first "
        "head is reordered. Do the same for every head.",
        'rearrange(weight, "(head half pair) d -> (head pair half) d", half=2, pair=d_head '
        "// 2) → weight": "You return the matrix in its old order.",
        "rearrange(weight → weight.copy_(rearrange(weight ;; // 2) → // 2))": "You change the matrix that you were "
        "given. Return a new one.",
        "if d_head % 2 or len(weight) % d_head: → if d_head % 2:\n        return weight\n    "
        "if len(weight) % d_head:": "You accept heads of an odd width, where one feature has no partner. Raise "
        "ValueError.",
        '    if d_head % 2 or len(weight) % d_head:\n        raise ValueError("the width of a head must be even and '
        'divide the rows")\n → ': "You check nothing. Raise ValueError yourself if `d_head` is odd or does not "
        "divide the rows.",
        "(head pair half) d → (pair head half) d": "You order the pairs of all heads by their number. The heads stay "
        "one after the other.",
        "// 2) → // 2).float()": "You return fp32, whatever `weight` is. Keep its dtype.",
    },
)


@pair_neighbours.variant
def in_two_halves(weight: Tensor, d_head: int) -> Tensor:
    if d_head % 2 or len(weight) % d_head:
        raise ValueError(d_head)
    return weight.unflatten(0, (-1, 2, d_head // 2)).transpose(1, 2).flatten(0, 2)  # type: ignore[no-untyped-call]


pair_neighbours.slips(
    in_two_halves,
    {
        "    if d_head % 2 or len(weight) % d_head:\n        raise ValueError(d_head)\n → ": "You check nothing. "
        "Raise ValueError yourself if `d_head` is odd or does not divide the rows.",
        "return weight.unflatten → return weight.T.unflatten ;; flatten(0, 2) → flatten(0, 2).T": "A head's features "
        "are *rows* of this matrix (out, in). You moved columns.",
        " or len(weight) % d_head → ": "You do not check whether rows are left over. Raise ValueError yourself if "
        "`d_head` does not divide them.",
    },
)
