"""The exercise on the rule of broadcasting."""

from __future__ import annotations

from itertools import pairwise, zip_longest
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
        case("none or one shape", [], []),
        case("equal shapes", [2, 3], [2, 3]),
        case("ones on both sides", [5, 1, 7, 1], [6, 1, 8]),
        case("ones on both sides", [1, 1], [1]),
        case("ones on both sides", [1, 3], [2, 1]),
        case("size 0", [0], [0]),
        case("size 0", [2, 1], [1, 0]),
        case("size 0", [2, 0], []),
        case("size 0", [1, 1], [0, 1], [1, 4]),
        case("several shapes", [4], [3, 1], [2, 1, 1]),
        case("several shapes", [1], [1], [5]),
        case("several shapes", [2, 1, 1], [], [3]),
        case("no common shape", [0], [2]),
        case("no common shape", [2], [0]),
        case("no common shape", [3, 4], [3]),
        case("no common shape", [3], [6]),
        case("no common shape", [6, 1], [3, 1]),
        case("no common shape", [2], [1], [3]),
        case("no common shape", [2, 3, 4], [3, 3, 4]),
        case("no common shape", [1, 2], [5, 1, 1], [7, 1, 1]),
        case("several shapes", [a, 1, c, 1], [b, 1, d], [c, 1]),
        case("ones on both sides", [a, 1, c], [b, 1]),
        case("no common shape", [a, b], [a]),
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


def _column(sizes: tuple[int, ...]) -> int:
    """Return the size that a column of sizes broadcasts to."""
    stretched = set(sizes) - {1}
    if len(stretched) > 1:
        raise ValueError("the shapes cannot be broadcast together")
    return stretched.pop() if stretched else 1


@broadcast_shape.misconception(
    "You align the shapes at the left. Broadcasting aligns them at the right and starts from the last axis."
)
def from_the_left(*shapes: list[int]) -> list[int]:
    return [_column(sizes) for sizes in zip_longest(*shapes, fillvalue=1)]


@broadcast_shape.misconception("You take the larger size. 3 and 2 do not match; only a 1 stretches.")
def the_larger(*shapes: list[int]) -> list[int]:
    columns = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return [0 if 0 in sizes else max(sizes) for sizes in columns][::-1]


@broadcast_shape.misconception("You let a 1 win against a 0. The 1 stretches to 0.")
def zero_grows(*shapes: list[int]) -> list[int]:
    columns = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return [_column(tuple(size or 1 for size in sizes)) for sizes in columns][::-1]


@broadcast_shape.misconception("You reject shapes with different numbers of axes. Missing axes count as 1.")
def same_rank_only(*shapes: list[int]) -> list[int]:
    if len({len(shape) for shape in shapes}) > 1:
        raise ValueError("not the same number of axes")
    return [_column(sizes) for sizes in zip(*shapes, strict=True)]


@broadcast_shape.misconception("You combine two shapes and leave out the third. All of them must match.")
def first_two(*shapes: list[int]) -> list[int]:
    return _by_torch(*shapes[:2])


@broadcast_shape.misconception("You let 2 stretch to 4. Broadcasting repeats single entries, never blocks.")
def divides(*shapes: list[int]) -> list[int]:
    columns = list(zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1))
    for sizes in columns:
        if any(n and max(sizes) % n for n in sizes):
            raise ValueError("the shapes cannot be broadcast together")
    return [0 if 0 in sizes else max(sizes) for sizes in columns][::-1]


@broadcast_shape.misconception("You stretch only one shape. Both may have to stretch: a column and a row make a table.")
def one_way(*shapes: list[int]) -> list[int]:
    common = _by_torch(*shapes)
    if common not in shapes:
        raise ValueError("the shapes cannot be broadcast together")
    return common


@broadcast_shape.misconception(
    "You reject an empty list of shapes. It is valid: the result is [], the shape of one number."
)
def no_shapes_refused(*shapes: list[int]) -> list[int]:
    if not shapes:
        raise ValueError("no shapes")
    return _by_torch(*shapes)


@broadcast_shape.misconception(
    "You compare each shape with the first one only. Two later shapes may not match although both match the first."
)
def only_with_the_first(*shapes: list[int]) -> list[int]:
    result = []
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        if sizes[0] != 1 and any(n not in (1, sizes[0]) for n in sizes):
            raise ValueError("the shapes cannot be broadcast together")
        result.append(next((n for n in sizes[::-1] if n != 1), 1))
    return result[::-1]


@broadcast_shape.misconception(
    "You compare each shape only with the one before it. A 1 between 2 and 3 matches both, but 2 and 3 do not match."
)
def only_neighbours(*shapes: list[int]) -> list[int]:
    columns = list(zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1))
    for sizes in columns:
        for pair in pairwise(sizes):
            _column(pair)
    return [next((n for n in sizes if n != 1), 1) for sizes in columns][::-1]


@broadcast_shape.misconception("Your sizes run from the last axis to the first. Reverse them at the end.")
def last_axis_first(*shapes: list[int]) -> list[int]:
    return _by_torch(*shapes)[::-1]


@broadcast_shape.misconception(
    "Your result has only as many axes as the shortest shape, where `zip` stops. Missing axes count as 1."
)
def as_short_as_the_shortest(*shapes: list[int]) -> list[int]:
    return [_column(sizes) for sizes in zip(*(shape[::-1] for shape in shapes), strict=False)][::-1]


@broadcast_shape.variant
def columns_by_hand(*shapes: list[int]) -> list[int]:
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for back in range(1, len(shape) + 1):
            if result[-back] == 1:
                result[-back] = shape[-back]
            elif shape[-back] not in (1, result[-back]):
                raise ValueError(f"axis -{back}: {shape[-back]} and {result[-back]}")
    return result


@broadcast_shape.variant
def recursion(*shapes: list[int]) -> list[int]:
    if not any(shapes):
        return []
    last = {shape[-1] for shape in shapes if shape}
    if len(last - {1}) > 1:
        raise ValueError("the shapes cannot be broadcast together")
    return [*recursion(*(shape[:-1] for shape in shapes)), (last - {1} or {1}).pop()]


@broadcast_shape.variant
def padded_first(*shapes: list[int]) -> list[int]:
    rank = max(map(len, shapes)) if shapes else 0
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    result = []
    for axis in range(rank):
        sizes = [shape[axis] for shape in padded]
        size = next((n for n in sizes if n != 1), 1)
        if any(n not in (1, size) for n in sizes):
            raise ValueError(sizes)
        result.append(size)
    return result
