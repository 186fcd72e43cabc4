"""The exercise on swapping two axes without moving a number."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _transposed(x: Tensor, i: int, j: int) -> Tensor:
    return x.transpose(i, j)


_WRITTEN = "z = x.clone()\ny = as_transposed(z, {0}, {1})\ny[{2}] = 100.0\nz"
_WRITTEN_PART = "z = x.clone()\ny = as_transposed(z[:, ::2], 0, 1)\ny[{0}] = 100.0\nz"


def _hidden(random: Random) -> list[Case]:
    seen, last = Random(7), "y = x[{0}]\nas_transposed(y, {1}, {2})"
    rank4 = normal(seen, 2, 3, 4, 5)
    shape = random.sample((2, 4, 6, 8), 4)  # removing a row never gives the size of another axis
    # for neighbouring axes, swapping and moving give the same result
    i, j = random.sample(random.choice([(0, 2), (1, 3), (0, 3)]), 2)
    drawn = normal(random, *shape)
    return [
        case("more axes", rank4, 0, 2),
        case("axes from both ends", rank4, 1, -1),
        case("one axis with itself", rank4, 2, 2),
        case("other types", integers(seen, 3, 2, 4, low=-9, high=9, dtype=torch.int64), 0, 1),
        case("axes of size 0 and 1", torch.zeros(2, 0, 3), 0, 1),
        case("already turned", normal(seen, 3, 4, 2).permute(2, 0, 1), 0, 1),
        script("a view of a part", last.format("1:, ::2, :, 1:4", 0, 3), x=rank4),
        script("repeated elements", "y = x.expand(3, 4)\nas_transposed(y, 0, 1)", x=normal(seen, 3, 1)),
        script("written into", _WRITTEN.format(1, 3, "0, 4, 2, 1"), x=rank4),
        script("written into", "z = x.clone()\ny = as_transposed(z[1:], 0, 1)\ny[0, 1] = 100.0\nz", x=rank4[0, 0]),
        script("written into", _WRITTEN_PART.format("1, 2, 1, 1"), x=rank4),
        case("more axes", drawn, i, j),
        case("axes from both ends", drawn, i - 4, j),
        script("a view of a part", last.format("1:", i, j), x=drawn),
        script("written into", _WRITTEN.format(i, j, "1, 1, 0, 1"), x=drawn),
    ]


_NUMBERS = torch.arange(12.0).view(3, 4)

as_transposed = Exercise(
    "as_transposed",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_transposed,
    cases=[
        case("a matrix", _NUMBERS[:2, :3].contiguous(), 0, 1),
        case("a square one", torch.arange(4.0).view(2, 2), 0, 1),
        case("three axes, the last two", torch.arange(12.0).view(2, 3, 2), -1, -2),
        case("three axes, the first and the last", torch.arange(12.0).view(2, 2, 3), -3, 2),
        script("a part that starts later", "y = x[1:, ::2]\nas_transposed(y, 0, 1)", x=_NUMBERS),
        script("writing into the result", _WRITTEN.format(0, 1, "3, 0"), x=_NUMBERS),
        script("writing into that of a part", _WRITTEN_PART.format("1, 0"), x=_NUMBERS),
    ],
    hidden_cases=_hidden,
    hints=[
        "Which of shape, stride and offset change? x.shape and x.stride() both have an entry for each axis.",
        "Make lists of both, swap two entries in each, and pass them to torch.as_strided.",
        "x.as_strided(sizes, strides) starts where x starts, unless you pass another offset.",
    ],
    forbid=[
        *(".transpose", ".permute", ".swapaxes", ".swapdims", ".movedim", ".moveaxis", ".adjoint", ".t", ".T", ".mT"),
        *(".H", ".mH", ".t_", ".transpose_", ".swapaxes_", ".swapdims_", "torch.einsum", "einops", "numpy.einsum"),
        *(".rollaxis", ".permute_dims", ".matrix_transpose", "functorch", ".unfold", ".diagonal"),
    ],
)


@as_transposed.variant
def two_lists_with_two_swaps(x: Tensor, i: int, j: int) -> Tensor:
    sizes, strides = list(x.shape), list(x.stride())
    sizes[i], sizes[j] = sizes[j], sizes[i]
    strides[i], strides[j] = strides[j], strides[i]
    return x.as_strided(sizes, strides)


as_transposed.slips(
    two_lists_with_two_swaps,
    {
        "strides[i], strides[j] = strides[j], strides[i] → pass": "You swap the sizes and keep the strides. "
        "Each axis now has the stride of the other one.",
        "sizes[i], sizes[j] = sizes[j], sizes[i] → pass": "You swap the strides and keep the sizes. Size and "
        "stride of an axis belong together: swap both.",
        "(sizes, strides) → (sizes, strides, 0)": "Your view starts at the beginning of the memory; x starts at "
        "`x.storage_offset()`.",
        "list(x.stride()) → list(torch.empty(x.shape).stride())": "You swap the strides of a fresh tensor. Use "
        "x.stride(): x may be part of a larger tensor.",
        "(sizes, strides) → (x.shape[::-1], x.stride()[::-1])": "You reverse all axes. Swap only two.",
        "as_strided(sizes, strides) → movedim(i, j)": "You move one axis, and the axes in between shift. A swap leaves "
        "them where they are.",
        "(sizes, strides) → (sizes, strides).clone()": "The numbers are right, but they are a copy: writing into your "
        "result does not change x.",
        "sizes, strides = → x = x.contiguous()\n    sizes, strides =": "You make x contiguous first. If x is not "
        "contiguous, that makes a copy, and your view shows the copy.",
        "as_strided(sizes, strides) → reshape(sizes)": "You reshape. That keeps the order of the numbers and swaps "
        "nothing.",
        "as_strided(sizes, strides) → transpose(abs(i), abs(j))": "You drop the sign of a negative axis. −1 is the "
        "last axis, not axis 1.",
    },
)
