"""The exercise on splitting features into heads."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.tensors.exercises.inputs import counting
from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _blocks(x: Tensor, heads: int) -> Tensor:
    """Move a window as wide as a head by its own width: the windows are blocks of neighbouring features, as views."""
    if x.shape[-1] % heads:
        raise ValueError("the heads do not divide the features")
    width = x.shape[-1] // heads
    return x.unfold(-1, width, width).transpose(1, 2)


_WRITTEN = "z = x.clone()\nsplit_heads(z{0}, {1})[0, 1, 0] = 100\nz"


def _split_cases(random: Random) -> list[Case]:
    seen = Random(7)
    b, s, heads, d = (random.randint(*sizes) for sizes in ((2, 3), (2, 3), (4, 5), (2, 5)))
    return [
        case("other shapes", normal(seen, 3, 4, 10), 5),
        case("one token", normal(seen, 2, 1, 6), 3),
        case("heads of width 1", normal(seen, 2, 3, 4), 4),
        case("other precisions", normal(seen, 1, 3, 8, dtype=torch.float16), 2),
        case("not contiguous", normal(seen, 2, 6, 3).transpose(1, 2), 2),
        script("not contiguous", "split_heads(x[:, 1:, ::2], 3)", x=normal(seen, 2, 4, 12)),
        script("written into", _WRITTEN.format("", 3), x=counting(2, 2, 6)),
        script("written into", _WRITTEN.format("[:, 1:, ::2]", 3), x=counting(2, 3, 12)),
        case("heads that do not divide", normal(seen, 1, 2, 6), 4),
        case("other shapes", normal(random, b, s, heads * d), heads),
        script("written into", _WRITTEN.format("", heads), x=normal(random, b, s, heads * d)),
        case("heads that do not divide", normal(random, b, s, heads * d + 1), heads),
    ]


split_heads = Exercise(
    "split_heads",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_blocks,
    cases=[
        case("two tokens of six features, two heads", counting(1, 2, 6), 2),
        case("two texts, three heads", counting(2, 2, 6), 3),
        case("one head", counting(1, 2, 3), 1),
        case("four heads for six features", counting(1, 2, 6), 4),
        script("writing into the result", _WRITTEN.format("", 2), x=counting(1, 2, 6)),
        script("writing into that of a slice", _WRITTEN.format("[:, :, ::2]", 2), x=counting(1, 2, 12)),
    ],
    hidden_cases=_split_cases,
    hints=[
        "Two steps: split the last axis in two, then swap two axes.",
        'rearrange(x, "b s (h d) -> b h s d", h=heads) does both and copies nothing.',
        "einops raises its own error for uneven heads. Check x.shape[-1] % heads first and raise ValueError.",
    ],
)


@split_heads.variant
def view_and_transpose(x: Tensor, heads: int) -> Tensor:
    b, s, features = x.shape
    width, rest = divmod(features, heads)
    if rest:
        raise ValueError("the heads do not divide the features")
    return x.view(b, s, heads, width).transpose(1, 2)


split_heads.slips(
    view_and_transpose,
    {
        "view(b, s, heads, width).transpose(1, 2) → view(b, heads, s, width)": "You cut the tokens into heads. Split "
        "the last axis first, then swap two axes.",
        "heads, width).transpose(1, 2) → width, heads).permute(0, 3, 1, 2)": "Your heads take every h-th feature. A "
        "head is a block of neighbouring features: (h d), not (d h).",
        ".transpose(1, 2) → ": "The last axis is split as it should be, but the heads still come after the tokens.",
        ".transpose(1, 2) → .transpose(1, 2).contiguous()": "The numbers are right, but you copied them. A split needs "
        "new strides only.",
        "x.view → x.contiguous().view": "You make x contiguous first. If x is not contiguous, that makes a copy, so "
        "writing to your result does not change x.",
        'raise ValueError("the heads do not divide the features") → x = x[..., : heads * width]': "You leave out "
        "features that do not divide evenly. That would lose them silently: raise a ValueError.",
        "heads, width) → width, heads)": "You used the number of heads as their width.",
        ".transpose(1, 2) → .permute(0, 2, 3, 1)": "Inside a head tokens come first, then features. Yours are the "
        "other way round.",
        ".transpose(1, 2) → .permute(2, 0, 1, 3)": "Your heads come before the texts. The order is b, h, s, d.",
    },
)
