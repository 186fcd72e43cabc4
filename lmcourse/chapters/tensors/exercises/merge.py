"""The exercise on laying heads side by side again."""

from __future__ import annotations

from random import Random

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.tensors.exercises.inputs import counting
from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _side_by_side(x: Tensor) -> Tensor:
    return torch.cat(list(x.unbind(1)), dim=-1)


def _merge_cases(random: Random) -> list[Case]:
    seen = Random(7)
    b, heads, s, d = (random.randint(2, 5) for _ in range(4))
    return [
        case("other shapes", normal(seen, 3, 5, 4, 2)),
        case("all sizes equal", normal(seen, 3, 3, 3, 3)),
        case("one text", normal(seen, 1, 2, 3, 4)),
        case("one token", normal(seen, 2, 3, 1, 4)),
        case("one head", normal(seen, 2, 1, 3, 4)),
        case("heads of width 1", normal(seen, 2, 3, 4, 1)),
        case("other precisions", normal(seen, 2, 3, 4, 2, dtype=torch.float16)),
        case("other precisions", integers(seen, 2, 3, 4, 2, low=-9, high=9, dtype=torch.int64)),
        case("not contiguous", normal(seen, 2, 4, 3, 5).transpose(1, 2)),
        script("not contiguous", "merge_heads(x[:, :, 1:, ::2])", x=normal(seen, 2, 3, 4, 6)),
        script("not contiguous", "merge_heads(x.expand(2, 3, 4, 5))", x=normal(seen, 3, 1, 5)),
        case("other shapes", normal(random, b, heads, s, d)),
        case("not contiguous", normal(random, b, s, heads, d).transpose(1, 2)),
    ]


merge_heads = Exercise(
    "merge_heads",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_side_by_side,
    cases=[
        case("two heads, two tokens, three features", counting(1, 2, 2, 3)),
        case("two texts, three heads", counting(2, 3, 2, 2)),
        case("heads of two views of one tensor", counting(2, 2, 3, 2).transpose(1, 2)),
    ],
    hidden_cases=_merge_cases,
    hints=[
        "The way back: tokens before heads, then the last two axes become one.",
        'In einops the pattern of split_heads, read backwards: "b h s d -> b s (h d)".',
        "With torch alone: transpose(1, 2) first, then flatten(2). A view is not always possible here, so `.view` may "
        "fail.",
    ],
)


@merge_heads.misconception(
    "You join in the order of the axes, so tokens and heads are mixed up: bring the tokens in front of the heads first."
)
def joined_as_they_lie(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[2], -1)


@merge_heads.misconception("Heads are laid side by side, not added.")
def heads_summed(x: Tensor) -> Tensor:
    return x.sum(1)


@merge_heads.misconception("You interleave the heads. Laid side by side, each head keeps its features together.")
def features_first(x: Tensor) -> Tensor:
    return rearrange(x, "b h s d -> b s (d h)")


@merge_heads.misconception("The texts of a batch are merged into one. b is the first axis of the result, too.")
def one_text(x: Tensor) -> Tensor:
    return rearrange(x, "b h s d -> (b s) (h d)")


@merge_heads.misconception("You average the heads; each keeps its own features.")
def averaged(x: Tensor) -> Tensor:
    return x.float().mean(1).to(x.dtype)


@merge_heads.misconception("Only the first head is left.")
def first_head(x: Tensor) -> Tensor:
    return x[:, 0]


@merge_heads.misconception(
    "Tokens and heads have changed places, but the heads are not joined yet: h and d become one axis."
)
def not_joined(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


@merge_heads.misconception(
    "You lay the heads after each other along the tokens. They belong side by side, along the features."
)
def along_the_tokens(x: Tensor) -> Tensor:
    return x.flatten(1, 2)


@merge_heads.misconception(
    "You use `.view`, which copies nothing and so cannot merge what does not follow in memory. `.reshape` copies "
    "where it has to."
)
def viewed(x: Tensor) -> Tensor:
    b, h, s, d = x.shape
    return x.transpose(1, 2).view(b, s, h * d)


@merge_heads.variant
def transpose_and_flatten(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


@merge_heads.variant
def head_after_head(x: Tensor) -> Tensor:
    b, h, s, d = x.shape
    result = torch.empty(b, s, h * d, dtype=x.dtype)
    for head in range(h):
        result[:, :, head * d : (head + 1) * d] = x[:, head]
    return result


@merge_heads.variant
def with_numpy_order(x: Tensor) -> Tensor:
    b, h, s, d = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(b, s, d * h)


@merge_heads.variant
def token_by_token(x: Tensor) -> Tensor:
    return torch.stack([x[:, :, token].reshape(len(x), -1) for token in range(x.size(2))], 1)
