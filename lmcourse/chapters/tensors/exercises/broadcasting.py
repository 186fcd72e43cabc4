"""The exercise on the rule of broadcasting."""

from __future__ import annotations

from itertools import zip_longest
from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _by_torch(*shapes: list[int]) -> list[int]:
    try:
        return list(sum((torch.zeros(shape) for shape in shapes), torch.zeros(())).shape)
    except RuntimeError as error:
        raise ValueError("the shapes cannot be broadcast together") from error


def _hidden(random: Random) -> list[Case]:
    a, b, c, d = random.sample(range(2, 10), 4)
    return [
        edge(case("none or one shape")),
        case("none or one shape", [2, 1, 3]),
        case("ones on both sides", [5, 1, 7, 1], [6, 1, 8]),
        case("size 0", [0], [0]),
        case("size 0", [2, 1], [1, 0]),
        case("size 0", [1, 1], [0, 1], [1, 4]),
        case("several shapes", [4], [3, 1], [2, 1, 1]),
        case("several shapes", [2, 1, 1], [], [3]),
        case("no common shape", [0], [2]),
        case("no common shape", [3, 4], [3]),
        case("no common shape", [2], [1], [3]),
        case("no common shape", [1, 2], [5, 1, 1], [7, 1, 1]),
        case("several shapes", [a, 1, c, 1], [b, 1, d], [c, 1]),
        case("ones on both sides", [a, 1, c], [b, 1]),
        case("no common shape", [a, b, 1], [c, 1, d]),
    ]


broadcast_shape = Exercise(
    "broadcast_shape",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_by_torch,
    cases=[
        case("a column and a row", [3, 1], [4]),
        case("a row for every row", [2, 3], [3]),
        case("one number", [], [5]),
        case("nothing, stretched", [0], [1]),
        case("a column and a row of one length", [3, 1], [3]),
        case("three shapes", [2, 1], [2], [4, 1, 1]),
        case("a number for every block", [2, 1, 1], [2]),
        case("2 and 3 beside a 1", [1], [2], [3]),
        case("a 1 between 2 and 3", [2], [1], [3]),
        edge(case("no shapes")),
        case("3 and 2", [2, 3], [2]),
        case("4 and 2", [4], [2]),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write the shapes below each other, aligned at the right. Each column is decided on its own.",
        "In each column, ignore the ones. The remaining sizes must all be equal.",
        "itertools.zip_longest(..., fillvalue=1) over the reversed shapes gives you the columns, the last axis first.",
    ],
    forbid=["torch", "numpy"],
)


@broadcast_shape.variant
def column_by_column(*shapes: list[int]) -> list[int]:
    result = []
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise ValueError("the shapes cannot be broadcast together")
        result.append(max(others, default=1))
    return result[::-1]


broadcast_shape.slips(
    column_by_column,
    {
        "shape[::-1] → shape ;; result[::-1] → result": "You align the shapes at the left. Broadcasting aligns them at "
        "the right and starts from the last axis.",
        "len(others) > 1 → False ;; max(others, default=1) → 0 if 0 in sizes else max(sizes)": "You take the larger "
        "size. 3 and 2 do not match; only a 1 stretches.",
        "if n != 1 → if n > 1": "You let a 1 win against a 0. The 1 stretches to 0.",
        'result = [] → if len({len(shape) for shape in shapes}) > 1:\n        raise ValueError("not the same number of '
        'axes")\n    result = []': "You reject shapes with different numbers of axes. Missing axes count as 1.",
        "in shapes) → in shapes[:2])": "You combine two shapes and leave out the third. All of them must match.",
        "len(others) > 1 → any(n and max(sizes) % n for n in sizes) ;; max(others, default=1) → 0 if 0 in sizes else "
        "max(sizes)": "You let 2 stretch to 4. Broadcasting repeats single entries, never blocks.",
        'return result[::-1] → if result[::-1] not in shapes:\n        raise ValueError("the shapes cannot be '
        'broadcast together")\n    return result[::-1]': "You stretch only one shape. Both may have to stretch: a "
        "column and a row make a table.",
        'result = [] → if not shapes:\n        raise ValueError("no shapes")\n    result = []': "You reject an empty "
        "list of shapes. It is valid: the result is [], the shape of one number.",
        "len(others) > 1 → len(others) > 1 and sizes[0] != 1 ;; max(others, default=1) → next((n for n in sizes[::-1] "
        "if n != 1), 1)": "You compare each shape with the first one only. Two later shapes may not match although "
        "both match the first.",
        "len(others) > 1 → any(1 != a != b != 1 for a, b in zip(sizes, sizes[1:])) ;; max(others, default=1) → next((n "
        "for n in sizes if n != 1), 1)": "You compare each shape only with the one before it. A 1 between 2 and 3 "
        "matches both, but 2 and 3 do not match.",
        "result[::-1] → result": "Your sizes run from the last axis to the first. Reverse them at the end.",
        "zip_longest → zip ;; , fillvalue=1 → ": "Your result has only as many axes as the shortest shape, where `zip` "
        "stops. Missing axes count as 1.",
    },
)
