"""The exercise on the conditions for a view, and on its strides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch

from lmcourse.chapters.tensors.exercises.view_cases import hidden_cases
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise

Strides = list[int] | None
Axis = tuple[int, int]


def _by_torch(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    """Lay a view without numbers over memory without numbers, and let PyTorch try to reshape it."""
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")
    try:
        view = torch.empty_strided(shape, strides, device="meta").view(new_shape)
    except RuntimeError:
        return None
    return [stride if n > 1 else 0 for n, stride in zip(new_shape, view.stride(), strict=True)]


view_strides = Exercise(
    "view_strides",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_by_torch,
    cases=[
        case("a fresh 2 × 3 tensor, flat", [2, 3], [3, 1], [6]),
        case("its transpose, flat", [3, 2], [1, 3], [6]),
        case("its transpose with one more axis", [3, 2], [1, 3], [3, 1, 2]),
        case("every other column, flat", [3, 4], [8, 2], [12]),
        case("a swap kept, an axis split", [2, 4, 3], [12, 1, 4], [2, 2, 2, 3]),
        case("a swap kept, two axes merged", [2, 4, 3], [12, 1, 4], [8, 3]),
        case("one column for all, flat", [3, 4], [1, 0], [12]),
        case("one number everywhere, flat", [3, 4], [0, 0], [12]),
        case("an axis of size 1 in the way", [2, 1, 3], [3, 50, 1], [6]),
        case("another number of elements", [2, 3], [3, 1], [5]),
    ],
    hidden_cases=hidden_cases,
    hints=[
        "Leave out the axes of size 1 first. Then find out which neighbouring axes can be read as one: one step of the "
        "left axis must be n steps of the right one, n being the right one's size.",
        "So the old shape becomes a few *runs*, each with a number of elements and the stride of its last axis. Inside "
        "a run every split is possible; across two runs none is.",
        "Go through the new shape from the right and cut each size off the last run that has elements left. The stride "
        "of each new axis is the run's stride times the sizes already cut off that run. If a size does not divide what "
        "is left, a copy is needed.",
    ],
    forbid=["torch", "numpy"],
)


def _fresh(shape: list[int]) -> list[int]:
    """The strides of a fresh tensor; 0 for axes of size 1."""
    return [math.prod(shape[axis + 1 :]) if n > 1 else 0 for axis, n in enumerate(shape)]


def _counted(shape: list[int], new_shape: list[int]) -> None:
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")


def _scaled(strides: list[int], step: int) -> list[int]:
    return [step * stride for stride in strides]


def _cut(shape: list[int], strides: list[int], new_shape: list[int], joins: Callable[[Axis, Axis], bool]) -> Strides:
    """Join neighbouring axes into runs where `joins` says so, and cut the new axes off these, from the right."""
    _counted(shape, new_shape)
    runs: list[list[int]] = []
    for axis, here in enumerate(zip(shape, strides, strict=True)):
        if axis and joins((shape[axis - 1], strides[axis - 1]), here):
            runs[-1] = [runs[-1][0] * here[0], here[1]]
        else:
            runs.append([*here])
    result: list[int] = []
    for n in reversed(new_shape):
        while n > 1 and runs[-1][0] == 1:
            runs.pop()
        if n > 1 and runs[-1][0] % n:
            return None
        result.insert(0, runs[-1][1] if n > 1 else 0)
        if n > 1:
            runs[-1] = [runs[-1][0] // n, runs[-1][1] * n]
    return result


@view_strides.misconception(
    "You give up on everything that is not contiguous. Splitting an axis always works, and some axes can still be "
    "merged."
)
def contiguous_only(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    given = [stride if n > 1 else 0 for n, stride in zip(shape, strides, strict=True)]
    return _fresh(new_shape) if given == _fresh(shape) else None


@view_strides.misconception(
    "You give up on everything that does not have the strides of a fresh tensor. Splitting an axis always works, and "
    "some axes can still be merged."
)
def fresh_strides_only(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    fresh = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return _fresh(new_shape) if strides == fresh else None


@view_strides.misconception(
    "You return the strides of a fresh tensor. That would need a copy where the axes do not follow each other in "
    "memory."
)
def always_possible(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    return _fresh(new_shape)


@view_strides.misconception(
    "You merge axes that do not follow each other: one step of the left axis must be n steps of the right one, n being "
    "its size."
)
def merged_across_a_gap(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    steps = [stride for n, stride in zip(shape, strides, strict=True) if n > 1]
    return _scaled(_fresh(new_shape), steps[-1] if steps else 0)


@view_strides.misconception(
    "Where a view is possible you return the strides of a fresh tensor. In `x[:, ::2]` neighbours are two apart in "
    "memory, and a view keeps that distance."
)
def unit_stride(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    return None if _by_torch(shape, strides, new_shape) is None else _fresh(new_shape)


@view_strides.misconception(
    "An axis of size 1 has no second element, so its stride is never used. It must not keep its neighbours from "
    "merging."
)
def stopped_by_an_axis_of_one(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    return _cut(shape, strides, new_shape, lambda left, right: left[1] == right[0] * right[1])


@view_strides.misconception(
    "You compare a step of the left axis with the left axis's own size. The rule takes the size of the right one: "
    "s_k = s_(k+1) · n_(k+1)."
)
def size_of_the_left_axis(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    sizes, steps = [n for n, _ in axes], [stride for _, stride in axes]
    return _cut(sizes, steps, new_shape, lambda left, right: left[1] == left[0] * right[1])


@view_strides.misconception(
    "Your view reads the elements in the order of memory. A view keeps the order of the old indices, not the order of "
    "memory."
)
def order_of_memory(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    axes = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    return _by_torch([shape[axis] for axis in axes], [strides[axis] for axis in axes], new_shape)


@view_strides.misconception(
    "You never merge. Two axes can be read as one if a step along the left one skips all elements of the right one."
)
def only_split(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    left = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    result: list[int] = []
    size, step = 1, 0
    for n in reversed(new_shape):
        if n > 1 and size == 1:
            size, step = left.pop()
        if size % n:
            return None
        result.insert(0, step if n > 1 else 0)
        size, step = size // n, step * n
    return result


@view_strides.misconception(
    "A view has as many elements as the tensor. If the numbers differ, raise a ValueError: a copy would not help."
)
def no_count_check(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    return _by_torch(shape, strides, new_shape) if math.prod(shape) == math.prod(new_shape) else None


@view_strides.misconception(
    "You never merge axes with stride 0. The rule also holds for 0: the merged axis has stride 0."
)
def expanded_never_merged(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    right = _by_torch(shape, strides, new_shape)
    merged = [n for n in new_shape if n > 1] != [n for n in shape if n > 1] and math.prod(new_shape) > 1
    repeated = [n for n, stride in zip(shape, strides, strict=True) if stride == 0 and n > 1]
    return None if merged and len(repeated) > 1 else right


@view_strides.misconception("The stride of an axis of size 1 is never used. The exercise asks for 0 there.")
def strides_for_axes_of_one(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    right = _by_torch(shape, strides, new_shape)
    if right is None:
        return None
    for axis in reversed(range(len(new_shape))):
        if new_shape[axis] == 1:
            last = axis == len(new_shape) - 1
            right[axis] = 1 if last else right[axis + 1] * new_shape[axis + 1]
    return right


@view_strides.misconception(
    "Your axes of size 1 have stride 1. That stride is never used; the exercise asks for 0 there."
)
def one_for_axes_of_one(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    right = _by_torch(shape, strides, new_shape)
    return right and [1 if n == 1 else stride for n, stride in zip(new_shape, right, strict=True)]


@view_strides.misconception(
    "You return None as soon as two neighbouring axes cannot be merged. Only the axes that the new shape joins must "
    "merge; all others may stay apart."
)
def all_axes_have_to_merge(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    if any(left != n * right for (_, left), (n, right) in itertools.pairwise(axes)):
        return None
    return _scaled(_fresh(new_shape), axes[-1][1] if axes else 0)


@view_strides.misconception(
    "Where axes merge you keep the stride of the left one. One step of the merged axis is a step of the right one."
)
def stride_of_the_left_axis(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    runs: list[list[int]] = []
    for n, stride in zip(shape, strides, strict=True):
        if n > 1 and runs and runs[-1][2] == n * stride:
            runs[-1] = [runs[-1][0] * n, runs[-1][1], stride]
        elif n > 1:
            runs.append([n, stride, stride])
    sizes, steps = [n for n, _, _ in runs], [first for _, first, _ in runs]
    return _cut(sizes, steps, new_shape, lambda left, right: False)


@view_strides.misconception(
    "Where an axis is split you give its stride to the left part. The last part has it, and the left one makes larger "
    "steps."
)
def cut_from_the_left(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    _counted(shape, new_shape)
    runs: list[list[int]] = []
    for n, stride in zip(shape, strides, strict=True):
        if n > 1 and runs and runs[-1][1] == n * stride:
            runs[-1] = [runs[-1][0] * n, stride]
        elif n > 1:
            runs.append([n, stride])
    result = []
    for n in new_shape:
        while n > 1 and runs[0][0] == 1:
            runs.pop(0)
        if n > 1 and runs[0][0] % n:
            return None
        result.append(runs[0][1] if n > 1 else 0)
        if n > 1:
            runs[0] = [runs[0][0] // n, runs[0][1] * n]
    return result


@view_strides.variant
def every_place_listed(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    """List the place of every element in order: the new strides are differences, and must explain all places."""
    places = [
        sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, shape))
    ]
    if len(places) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")
    result, step = [], len(places)
    for n in new_shape:
        step //= n
        result.append(places[step] - places[0] if n > 1 else 0)
    found = [
        sum(i * s for i, s in zip(index, result, strict=True)) for index in itertools.product(*map(range, new_shape))
    ]
    return result if found == places else None


@view_strides.variant
def as_pytorch_does(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    """Go from the right, one block of old axes at a time."""
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError
    result = [0] * len(new_shape)
    axis, base = len(new_shape) - 1, strides[-1] if strides else 0
    old, new = 1, 1
    for d in range(len(shape) - 1, -1, -1):
        old *= shape[d]
        if d > 0 and (shape[d - 1] == 1 or strides[d - 1] == old * base):
            continue
        while axis >= 0 and (new < old or new_shape[axis] == 1):
            result[axis] = new * base if new_shape[axis] > 1 else 0
            new *= new_shape[axis]
            axis -= 1
        if new != old:
            return None
        if d > 0:
            base, old, new = strides[d - 1], 1, 1
    return result


@view_strides.variant
def recursion(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    """Merge the last two axes if one continues the other; else split the new last axis off the old one."""
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")

    def merge(axes: list[list[int]]) -> list[list[int]]:
        if len(axes) < 2:
            return axes
        first, *rest = axes
        (n, step), *more = merged = merge(rest)
        return [[first[0] * n, step], *more] if first[1] == n * step else [first, *merged]

    def cut(axes: list[list[int]], sizes: list[int]) -> list[int] | None:
        if not sizes:
            return []
        *front, n = sizes
        if n == 1:
            before, mine = cut(axes, front), 0
        else:
            *others, (size, mine) = axes
            if size % n:
                return None
            before = cut([*others, [size // n, mine * n]] if size > n else others, front)
        return None if before is None else [*before, mine]

    return cut(merge([[n, s] for n, s in zip(shape, strides, strict=True) if n > 1]), new_shape)


for _change in ("", ", strict=False"):
    view_strides.equivalent_mutant(
        f"for n, stride in zip(shape, strides, strict=True): → for n, stride in zip(shape, strides{_change}):",
        "shape and strides have an entry for each axis, both",
    )
for _change in ("1", "-1"):
    view_strides.equivalent_mutant(
        f"left, step = (1, 0) → left, step = (1, {_change})",
        "until the first run is taken there are only axes of size 1, whose stride is 0 whatever the step",
    )
view_strides.equivalent_mutant(
    "left, step = (left // n, step * n) → left, step = (left / n, step * n)",
    "n divides what is left, and the quotient as a float is the same number",
)
