"""The exercise on finding an element in memory."""

from __future__ import annotations

from functools import reduce
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _looked_up(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    """Write its own place into every element of the memory, lay the view over it, and look."""
    end = offset + sum(max(n - 1, 0) * stride for n, stride in zip(shape, strides, strict=True))
    return int(torch.arange(end + 1).as_strided(shape, strides, offset)[tuple(index)])


def _other_view(random: Random, rank: int) -> Case:
    """A view whose indices and strides both grow, so that no wrong order or step hits the place by luck."""
    places = sorted(random.sample(range(1, 8), rank))
    shape = [place + random.randint(1, 3) for place in places]
    index = [place - n if rank % 2 else place for place, n in zip(places, shape, strict=True)]
    strides = sorted(random.sample(range(200, 400), rank))
    return case("other views", index, shape, strides, random.randint(1, 50))


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("no axes", [], [], [], 5),
        case("no axes", [], [], []),
        case("one axis", [6], [7], [3], 2),
        case("more axes", [1, 2, 3], [2, 3, 4], [12, 4, 1]),
        case("more axes", [0, -1, 1, -2], [3, 2, 4, 5], [1, 60, 3, 12], 9),
        case("negative indices", [-3, -4], [3, 4], [4, 1]),
        case("negative indices", [-1, -1, -1], [2, 3, 4], [1, 2, 6], 100),
        case("repeated elements", [4, 3], [5, 6], [0, 0], 3),
        case("repeated elements", [-2, 1], [5, 2], [0, 7]),
        case("overlapping windows", [2, 3], [3, 4], [1, 1], 1),
        case("axes of size 1", [0, 2, -1], [1, 3, 1], [50, 2, 50]),
        case("out of range", [0, 4], [3, 4], [4, 1]),
        case("out of range", [-4, 0], [3, 4], [4, 1]),
        case("out of range", [0, -5], [3, 4], [4, 1], 20),
        case("out of range", [3, 0], [3, 4], [0, 1]),
        case("out of range", [0, 0], [2, 0], [1, 1]),
    ]
    cases += [_other_view(random, rank) for rank in (1, 2, 3, 4)]
    shape = [random.randint(2, 5), random.randint(2, 5)]
    cases.append(case("out of range", [shape[0] + random.randint(0, 3), 0], shape, [shape[1], 1]))
    return cases


element_offset = Exercise(
    "element_offset",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_looked_up,
    cases=[
        case("a fresh 3 × 4 tensor", [1, 2], [3, 4], [4, 1]),
        case("its transpose", [2, 1], [4, 3], [1, 4]),
        case("a slice: x[1:, ::2]", [1, 1], [2, 2], [4, 2], 4),
        case("one column for all", [2, 3], [3, 4], [1, 0]),
        case("the last element", [-1, -1], [3, 4], [4, 1]),
        case("a fourth row of three", [3, 0], [3, 4], [4, 1]),
    ],
    hidden_cases=_hidden,
    hints=[
        "Each axis takes you index · stride elements further. Where do you start?",
        "A negative index counts from the end of its axis: add the size. Python's i % n does that for every index that "
        "is allowed.",
        "Allowed are -n, …, n - 1. Check before you add anything, and raise IndexError for the rest.",
    ],
    forbid=["torch", "numpy"],
)


def _stepped(index: list[int], shape: list[int], steps: list[int], offset: int = 0, shift: int = 0) -> int:
    """The right way, with these steps; `shift` is added to each index."""
    for i, n in zip(index, shape, strict=True):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of range")
    return offset + sum((i % n + shift) * step for i, n, step in zip(index, shape, steps, strict=True))


def _fresh(shape: list[int]) -> list[int]:
    """The strides of a tensor of this shape that was just made."""
    strides = [1]
    for n in shape[:0:-1]:
        strides.insert(0, n * strides[0])
    return strides[: len(shape)]


@element_offset.misconception("You count from one. Index 6 is the seventh element, and what is asked for is the index.")
def counted_from_one(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return _stepped(index, shape, strides, offset) + 1


@element_offset.misconception("The view begins at `offset`, not at the start of the memory: yours leaves it out.")
def offset_left_out(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return _stepped(index, shape, strides)


@element_offset.misconception(
    "You derive the strides from the shape. That holds for a fresh tensor only; here they are given."
)
def strides_from_the_shape(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return _stepped(index, shape, _fresh(shape), offset)


@element_offset.misconception(
    "Your strides are paired with the wrong axes: the first stride belongs to the first index."
)
def strides_reversed(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return _stepped(index, shape, strides[::-1], offset)


@element_offset.misconception(
    "You multiply a negative index by its stride. −1 means the last element: add the size first."
)
def negative_as_it_is(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    _stepped(index, shape, strides)
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))


@element_offset.misconception(
    "You accept an index beyond the shape. It would read a number that belongs to something else."
)
def unchecked(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    positive = [i + n if i < 0 else i for i, n in zip(index, shape, strict=True)]
    return offset + sum(i * stride for i, stride in zip(positive, strides, strict=True))


@element_offset.misconception(
    "You let an index that is too large wrap around to the beginning. PyTorch raises IndexError, and so should you."
)
def wrapped(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return offset + sum(i % n * stride for i, n, stride in zip(index, shape, strides, strict=True))


@element_offset.misconception("You count bytes. Strides are in elements here (in NumPy they are in bytes).")
def in_bytes(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return 4 * _stepped(index, shape, strides, offset)


@element_offset.misconception(
    "You multiply by the sizes. The stride of an axis is the product of the sizes *after* it, at best."
)
def sizes_as_strides(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return _stepped(index, shape, shape, offset)


@element_offset.variant
def one_axis_after_the_other(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    place = offset
    for axis in range(len(index)):
        i = index[axis]
        if i < 0:
            i += shape[axis]
        if i < 0 or i >= shape[axis]:
            raise IndexError(axis)
        place += i * strides[axis]
    return place


@element_offset.variant
def ranges_know_negative_indices(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    return offset + sum(range(n)[i] * stride for i, n, stride in zip(index, shape, strides, strict=True))


@element_offset.variant
def recursion(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    def below(axis: int, place: int) -> int:
        if axis == len(index):
            return place
        if index[axis] not in range(-shape[axis], shape[axis]):
            raise IndexError("beyond the shape")
        return below(axis + 1, place + (index[axis] + shape[axis]) % shape[axis] * strides[axis])

    return below(0, offset)


@element_offset.variant
def folded(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    if any(max(i, -1 - i) >= n for i, n in zip(index, shape, strict=True)):
        raise IndexError("an index is out of range")
    steps = [(i if i >= 0 else n + i) * s for i, n, s in zip(index, shape, strides, strict=True)]
    return reduce(int.__add__, steps, offset)


for _change in ("", ", strict=False"):
    element_offset.equivalent_mutant(
        "for i, n, stride in zip(index, shape, strides, strict=True): → "
        f"for i, n, stride in zip(index, shape, strides{_change}):",
        "index, shape and strides have an entry for each axis, all three",
    )
