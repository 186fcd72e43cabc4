"""The exercise on finding the index of an element from its place in memory."""

from __future__ import annotations

import itertools
from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _looked_up(place: int, shape: list[int], strides: list[int], offset: int = 0) -> list[int] | None:
    """Write into every element of the memory its own place, lay the view over it, and search for the number."""
    end = offset + sum(max(n - 1, 0) * stride for n, stride in zip(shape, strides, strict=True))
    found = (torch.arange(end + 1).as_strided(shape, strides, offset) == place).nonzero()
    return found[0].tolist() if len(found) else None


def _other_view(random: Random, rank: int) -> Case:
    """A case with a random view that shows each place at most once, with its axes in any order in memory."""
    shape = random.sample(range(2, 7), rank)
    strides, step = [0] * rank, random.randint(1, 3)
    for axis in random.sample(range(rank), rank):
        strides[axis], step = step, step * shape[axis] + random.randint(0, 2)
    offset = random.randint(1, 50)
    index = [random.randrange(1, n) for n in shape]
    place = offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
    return case("other views", place, shape, strides, offset)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("other views", 9, [3, 5], [3, 1], 1),
        case("other views", 12, [5, 3], [2, 4], 2),
        case("other views", 9, [5, 3], [2, 3], 1),
        case("no axes", 5, [], [], 5),
        case("one axis", 20, [7], [3], 2),
        case("more axes", 3, [2, 2, 2], [2, 1, 1]),
        case("more axes", 90, [3, 2, 4, 5], [1, 60, 3, 12], 9),
        case("a transpose of a part", 21, [3, 2], [2, 8], 5),
        case("repeated elements", 3, [5, 6], [0, 0], 3),
        case("axes of size 1", 3, [1, 3, 1], [50, 2, 50], 1),
        case("not shown", 2, [4, 3], [1, 4], 3),
        case("not shown", 0, [2, 0], [1, 1]),
    ]
    return [*cases, *(_other_view(random, rank) for rank in (1, 2, 3, 4))]


index_at = Exercise(
    "index_at",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_looked_up,
    cases=[
        case("a fresh 3 × 4 tensor", 6, [3, 4], [4, 1]),
        case("its transpose", 6, [4, 3], [1, 4]),
        case("a slice: x[1:, ::2]", 10, [2, 2], [4, 2], 4),
        case("a place between two of its elements", 5, [2, 2], [4, 2], 4),
        case("axes of size 1", 3, [1, 3, 1], [50, 2, 50], 1),
        edge(case("a place before the slice", 2, [2, 2], [4, 2], 4)),
        edge(case("a view without axes", 5, [], [], 5)),
        edge(case("a view without axes, another place", 6, [], [], 5)),
        case("one row for all", 2, [3, 4], [0, 1]),
        case("overlapping windows", 3, [3, 3], [1, 1]),
        case("overlapping windows, another place", 4, [3, 4], [1, 1]),
        case("windows that begin two apart", 6, [3, 5], [2, 1], 1),
        case("overlapping windows, the larger stride last", 6, [4, 3], [2, 3]),
        case("the same, another place", 4, [4, 3], [2, 3]),
    ],
    hidden_cases=_hidden,
    hints=[
        "The formula gives the place of one index. How many indices does a view have? You can try them all.",
        "Division by the strides is shorter, but it assumes that each stride is a multiple of the next smaller one. "
        "Draw the view with shape (3, 3) and strides (1, 1) first.",
        "itertools.product(*map(range, shape)) gives all indices in reading order, the last axis fastest.",
    ],
    forbid=["torch", "numpy"],
)


@index_at.variant
def all_indices_tried(place: int, shape: list[int], strides: list[int], offset: int = 0) -> list[int] | None:
    for index in itertools.product(*map(range, shape)):
        if offset + sum(i * stride for i, stride in zip(index, strides, strict=True)) == place:
            return list(index)
    return None


index_at.slips(
    all_indices_tried,
    {
        "== place → == place - 1": "You count from one. Places start at 0: place 6 is the seventh number of the "
        "memory.",
        "offset + sum → sum": "You leave out `offset`. The view begins there, not at the start of the memory.",
        "for index → if not offset <= place < offset + math.prod(shape):\n        return None\n    for "
        "index": "You say None for places past the number of elements. With gaps a view reaches further: its last "
        "element is at the offset plus (size - 1) · stride of each axis.",
        "(index, strides, strict=True) → (index, [math.prod(shape[axis + 1 :]) for axis in "
        "range(len(shape))])": "You compute the strides from the shape. That is right only for a fresh tensor; here "
        "the strides are given.",
        "in itertools.product(*map(range, shape)) → in [*itertools.product(*map(range, shape))][::-1]": "Several "
        "indices lead to the place, and you return the last. Return the first in reading order.",
        "return None → raise IndexError(place)": "You raise an error for a place that the view does not show. The "
        "exercise asks for None.",
        "*map(range, shape) → *(range(n - 1) for n in shape)": "You leave out the last index of each axis. An axis of "
        "size n has the indices 0 to n − 1.",
        "*map(range, shape) → *(range(n + 1) for n in shape)": "You also try index n on an axis of size n. Its last "
        "index is n − 1.",
        "*map(range, shape) → range(shape[0]), range(shape[1]) ;; (index, strides, strict=True) → (index, strides)": (
            "Your code is for two axes. A view may have any number of them, or none."
        ),
        "offset + sum → -offset + sum": "You add `offset` to the place. The place already contains it: subtract it.",
        "for index → hits = []\n    for index ;; return list(index) → hits.append(list(index)) ;; return None → return "
        "hits or None": "You return a list of all indices that lead to the place. Return only the first one.",
    },
)


@index_at.variant
def one_axis_after_the_other(place: int, shape: list[int], strides: list[int], offset: int = 0) -> list[int] | None:
    if not shape:
        return [] if place == offset else None
    for i in range(shape[0]):
        below = one_axis_after_the_other(place, shape[1:], strides[1:], offset + i * strides[0])
        if below is not None:
            return [i, *below]
    return None


index_at.slips(
    one_axis_after_the_other,
    {
        "range(shape[0]) → [(place - offset) // strides[0] if strides[0] else 0] ;; below is not None → below is not "
        "None and i in range(shape[0])": "You divide by the strides from left to right. In a transpose the left stride "
        "is the small one, and the quotient is too large for its axis.",
        "range(shape[0]) → [(place - offset) // strides[0]] ;; [] if place == offset else None → []": "You divide by "
        "the strides from left to right, and trust the quotients. A stride may be 0, a quotient may be too large for "
        "its axis, and a remainder may be left.",
        "range(shape[0]) → [max(0, min((place - offset) // strides[0], shape[0] - 1)) if strides[0] else "
        "0]": "You take as many steps as fit along each axis, from left to right. Fewer steps along one axis may leave "
        "a rest that the next axes can reach, and they may come first in reading order.",
    },
)


@index_at.variant
def the_largest_stride_first(
    place: int, shape: list[int], strides: list[int], offset: int = 0
) -> tuple[int, ...] | None:
    found = [([0] * len(shape), place - offset)]
    for axis in sorted(range(len(shape)), key=lambda axis: -strides[axis]):
        found = [
            ([*index[:axis], i, *index[axis + 1 :]], rest - i * strides[axis])
            for index, rest in found
            for i in range(shape[axis])
        ]
    return min((tuple(index) for index, rest in found if rest == 0), default=None)


_GREEDY = (
    "You go as far as possible along the largest stride first. Fewer steps there may come first in reading order, or "
    "leave what the other axes can reach."
)
index_at.slips(
    the_largest_stride_first,
    {
        "for i in range(shape[axis]) → for i in [rest // strides[axis] if strides[axis] else 0] if i in "
        "range(shape[axis])": "You divide by the largest stride first. Where windows overlap the quotient can be too "
        "large for its axis, although another index leads to the place.",
        "range(shape[axis]) → [rest // strides[axis] if strides[axis] else 0] ;; rest == 0 → rest == 0 and place >= "
        "offset": "You divide by the largest stride first and trust the quotients. Compare each with the size of its "
        "axis: an axis of size 3 has no index 3.",
        "range(shape[axis]) → [max(0, min(rest // strides[axis], shape[axis] - 1)) if strides[axis] else 0]": _GREEDY,
        "-strides[axis] → (-strides[axis], -axis) ;; range(shape[axis]) → [max(0, min(rest // strides[axis], "
        "shape[axis] - 1)) if strides[axis] else 0]": _GREEDY,
        "min((tuple(index) for index, rest in found if rest == 0), default=None) → next((tuple(index) for index, rest "
        "in found if rest == 0), None)": "Several indices lead to the place, and you return the first in the order of "
        "the strides. Reading order is that of the axes, the last one fastest.",
        "sorted(range(len(shape)), key=lambda axis: -strides[axis]) → reversed(range(len(shape))) ;; range(shape[axis])"
        " → [max(0, min(rest // strides[axis], shape[axis] - 1)) if strides[axis] else 0]": "You go as far as possible "
        "along the last axis first. The other axes may not reach what is left.",
        "rest == 0 → 0 <= rest < min(filter(None, strides), default=1)": "You return an index for a place that the "
        "view steps over. Put it into the formula: it gives another place.",
    },
)
