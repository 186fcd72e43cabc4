"""The exercise on the conditions for a view, and on its strides."""

from __future__ import annotations

import math
from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise

Strides = list[int] | None


def _by_torch(shape: list[int], strides: list[int], new_shape: list[int]) -> Strides:
    """Lay a view without numbers over memory without numbers, and let PyTorch try to reshape it."""
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")
    try:
        view = torch.empty_strided(shape, strides, device="meta").view(new_shape)
    except RuntimeError:
        return None
    return [stride if n > 1 else 0 for n, stride in zip(new_shape, view.stride(), strict=True)]


def _hidden(random: Random) -> list[Case]:
    a, b, c, gap = random.sample(range(2, 8), 4)
    swapped = [a, b, c], [b * c, 1, b]
    return [
        case("merged", [2, 3, 4], [24, 8, 2], [2, 12]),
        case("split", [6, 4], [1, 6], [3, 2, 2, 2]),
        case("merged and cut elsewhere", [2, 6, 5], [30, 5, 1], [3, 4, 5]),
        case("merged and cut elsewhere", [2, 6, 5], [6, 1, 12], [4, 3, 5]),
        case("a copy would be needed", [2, 6, 5], [6, 1, 12], [2, 30]),
        case("a copy would be needed", [6, 4], [8, 1], [4, 6]),
        case("a copy would be needed", [10, 6], [1, 10], [3, 5, 4]),
        case("the same shape", [3, 2], [1, 3], [3, 2]),
        case("axes of size 1", [1], [7], [1, 1, 1]),
        case("axes of size 1", [1, 4, 1, 3], [99, 3, 5, 1], [12, 1]),
        case("axes of size 1", [2, 1, 3], [1, 1, 2], [6]),
        case("no axes", [], [], [1, 1]),
        case("no axes", [], [], []),
        case("repeated elements", [4, 6], [1, 0], [4, 2, 3]),
        case("overlapping windows", [3, 4], [1, 1], [12]),
        case("overlapping windows", [3, 4], [1, 1], [3, 2, 2]),
        case("another number of elements", [3, 4], [4, 1], [3, 5]),
        case("another number of elements", [4], [1], []),
        # Sizes and gaps do not affect whether the view is possible.
        case("merged", [a, b, c], [gap * b * c, gap * c, gap], [a, b * c]),
        case("merged", [a, 1, b], [b, gap * c, 1], [a * b]),
        case("split", [c, a * b], [1, c], [c, a, b]),
        case("merged and cut elsewhere", [a, b * c], [gap * b * c, gap], [a * b, c]),
        case("a copy would be needed", *swapped, [a, b * c]),
        case("a copy would be needed", [a, b], [gap * b, 1], [a * b]),
        case("another number of elements", [a, b], [b, 1], [a * b + 1]),
    ]


view_strides = Exercise(
    "view_strides",
    points=4,
    minutes=13,
    difficulty=3,
    reference=_by_torch,
    cases=[
        case("a fresh 2 × 3 tensor, flat", [2, 3], [3, 1], [6]),
        case("a fresh 2 × 3 × 4 tensor, flat", [2, 3, 4], [12, 4, 1], [24]),
        case("a fresh 4 × 6 tensor as 6 × 4", [4, 6], [6, 1], [6, 4]),
        case("a transpose, flat", [3, 2], [1, 3], [6]),
        case("a transpose with one more axis", [3, 2], [1, 3], [3, 1, 2]),
        case("every other column, flat", [3, 4], [8, 2], [12]),
        case("a swap kept, an axis split", [2, 4, 3], [12, 1, 4], [2, 2, 2, 3]),
        case("a swap kept, two axes merged", [2, 4, 3], [12, 1, 4], [8, 3]),
        case("a swap, and sizes that do not divide", [4, 6], [1, 4], [2, 3, 4]),
        case("one column for all, flat", [3, 4], [1, 0], [12]),
        case("one number everywhere, flat", [3, 4], [0, 0], [12]),
        case("an axis of size 1 in the way", [2, 1, 3], [3, 50, 1], [6]),
        edge(case("a number without axes becomes a row", [], [], [1, 1])),
        edge(case("two axes more of size 1", [3, 2], [1, 3], [1, 3, 2, 1])),
        case("another number of elements", [2, 3], [3, 1], [5]),
    ],
    hidden_cases=_hidden,
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


@view_strides.variant
def runs_cut_from_the_right(shape: list[int], strides: list[int], new_shape: list[int]) -> list[int] | None:
    if math.prod(shape) != math.prod(new_shape):
        raise ValueError("the new shape has a different number of elements")
    runs: list[tuple[int, int]] = []
    before = 0
    for n, stride in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and before == n * stride:
            runs[-1] = (runs[-1][0] * n, stride)
        else:
            runs.append((n, stride))
        before = stride
    result = []
    left, step = 1, 0
    for n in reversed(new_shape):
        while n > 1 and left == 1:
            left, step = runs.pop()
        if left % n:
            return None
        result.append(step if n > 1 else 0)
        left, step = left // n, step * n
    return result[::-1]


_NEVER_USED = "The stride of an axis of size 1 is never used. The exercise asks for 0 there."
_DIVIDES = (
    "You cut a size off a run without asking whether it divides what is left. If not, only a copy has that shape."
)

view_strides.slips(
    runs_cut_from_the_right,
    {
        "result = [] → if runs[1:] or (runs and runs[0][1] != 1):\n        return None\n    result = []": "You give up "
        "on everything that is not contiguous. Splitting an axis always works, and some axes can still be merged.",
        "before = 0 → if strides != [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]:\n        return "
        "None\n    before = 0": "You give up on everything that does not have the strides of a fresh tensor. Splitting "
        "an axis always works, and some axes can still be merged.",
        "step if n > 1 else 0 → step": "You give a new axis of size 1 the stride of its neighbour. Nobody steps "
        "along it: "
        "its stride is 0 here.",
        "result = [] → runs = [(math.prod(shape), 1)]\n    result = []": "You return the strides of a fresh tensor. "
        "That would need a copy where the axes do not follow each other in memory.",
        "runs and before == n * stride → runs": "You merge axes that do not follow each other: one step of the left "
        "axis must be n steps of the right one, n being its size.",
        "return result[::-1] → return [math.prod(new_shape[axis + 1 :]) if n > 1 else 0 for axis, n in "
        "enumerate(new_shape)]": "Where a view is possible you return the strides of a fresh tensor. In `x[:, ::2]` "
        "neighbours are two apart in memory, and a view keeps that distance.",
        "if n == 1 → if False": "An axis of size 1 has no second element, so its stride is never used. It must not "
        "keep its neighbours from merging.",
        "== n * stride → == runs[-1][0] * stride": "You compare a step of the left axis with the left axis's own size. "
        "The rule takes the size of the right one: s_k = s_(k+1) · n_(k+1).",
        "zip(shape, strides, strict=True) → sorted(zip(shape, strides), key=lambda axis: -axis[1])": "Your view reads "
        "the elements in the order of memory. A view keeps the order of the old indices, not the order of memory.",
        "runs and before == n * stride → False": "You never merge. Two axes can be read as one if a step along the "
        "left one skips all elements of the right one.",
        'raise ValueError("the new shape has a different number of elements") → return None': "A view has as many "
        "elements as the tensor. If the numbers differ, raise a ValueError: a copy would not help.",
        "== n * stride → == n * stride > 0": "You never merge axes with stride 0. The rule also holds for 0: the "
        "merged axis has stride 0.",
        "left, step = 1, 0 → left, step = 1, 1 ;; step if n > 1 else 0 → step": _NEVER_USED,
        "left, step = 1, 0 → left, step = 1, 1 ;; step if n > 1 else 0 → step ;; n > 1 and left == 1 → left == 1 and "
        "runs": _NEVER_USED,
        "left % n → False": _DIVIDES,
        "left % n → left < n": _DIVIDES,
        "left % n → left < n ;; left, step = runs.pop() → left, step = runs[-1]; del runs[-1]": _DIVIDES,
        "before == n * stride → stride == before * runs[-1][0] ;; * n, stride) → * n, runs[-1][1])": "Your rule for "
        "merging is the wrong way round. One step of the *left* axis must lead as far as all steps of the right one.",
        "if n > 1 else 0 → if n > 1 else 1": "Your axes of size 1 have stride 1. That stride is never used; the "
        "exercise asks for 0 there.",
        "result = [] → if len(runs) > 1:\n        return None\n    result = []": "You return None as soon as two "
        "neighbouring axes cannot be merged. Only the axes that the new shape joins must merge; all others may stay "
        "apart.",
        "result = [] → ends = {math.prod(shape[axis:]) for axis in range(len(shape) + 1)}\n    for axis in "
        "range(len(new_shape)):\n        low, high = math.prod(new_shape[axis + 1 :]), math.prod(new_shape[axis:])\n"
        "        if not {low, high} <= ends and any(low < end < high for end in ends):\n            return None\n"
        "    result = []": "You let a new axis be a part of one old axis, or several whole ones. It may also take "
        "a part of each of two: a fresh (4, 6) is (6, 4), too.",
        "* n, stride) → * n, stride)\n            stride = -1": "You merge two axes and never a third one. If both "
        "pairs of neighbours fit, three axes can be read as one.",
        "* n, stride) → * n, runs[-1][1])": "Where axes merge you keep the stride of the left one. One step of the "
        "merged axis is a step of the right one.",
        "reversed(new_shape) → new_shape ;; left, step = runs.pop() → left, step = runs.pop(0) ;; result[::-1] → "
        "result": "Where an axis is split you give its stride to the left part. The last part has it, and the left one "
        "makes larger steps.",
    },
)
