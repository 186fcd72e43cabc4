"""The exercise on query heads that share keys and values."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _by_torch(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads")
    s, t = q.shape[-2], k.shape[-2]
    mask = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    mixed = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask, enable_gqa=True)
    return mixed.to(q.dtype)


def _heads(
    random: Random, batch: int, heads: int, groups: int, s: int, t: int, d: int
) -> tuple[Tensor, Tensor, Tensor]:
    return normal(random, batch, heads, s, d), normal(random, batch, groups, t, d), normal(random, batch, groups, t, d)


def _whole(random: Random) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs whose scores are exact in bf16 and whose values are positive, so that their sums do not cancel."""
    q, k = (integers(random, 1, heads, 3, 16, dtype=torch.bfloat16) for heads in (6, 2))
    return q, k, integers(random, 1, 2, 3, 16, low=1, high=2, dtype=torch.bfloat16)


def _cases(random: Random) -> list[Case]:
    groups, times, t, d = random.randint(2, 3), random.randint(2, 4), random.randint(3, 6), random.randint(2, 8)
    heads = groups * times
    seen = Random(7)
    return [
        case("other numbers of heads", *_heads(seen, 2, 9, 3, 5, 5, 4)),
        case("one key head (MQA)", *_heads(seen, 2, 3, 1, 4, 4, 5)),
        case("a key head each (MHA)", *_heads(seen, 2, 3, 3, 4, 4, 5)),
        case("fewer queries than keys", *_heads(seen, 2, 4, 2, 2, 5, 3)),
        case("other precisions", *_whole(seen)),
        case("heads that cannot be shared out", *_heads(seen, 1, 7, 3, 2, 2, 4)),
        case("heads that cannot be shared out", *_heads(seen, 1, 2, 4, 2, 2, 4)),
        case("other numbers of heads", *_heads(random, 2, heads, groups, t, t, d)),
        case("other numbers of heads", *_heads(random, 1, 12, 3, 4, 4, 8)),
        case("one key head (MQA)", *_heads(random, 2, heads, 1, t, t, d)),
        case("a key head each (MHA)", *_heads(random, 2, heads, heads, t, t, d)),
        case("fewer queries than keys", *_heads(random, 2, heads, groups, 2, t, d)),
        case("fewer queries than keys", *_heads(random, 1, 8, 2, 1, t, 16)),
        case("heads that cannot be shared out", *_heads(random, 1, 2 * times + 1, 2, 3, 3, 4)),
    ]


_FIXED = Random(3)

grouped_query_attention = Exercise(
    "grouped_query_attention",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("six heads, two key heads", *_heads(_FIXED, 1, 6, 2, 3, 3, 5)),
        case("four heads, one key head", *_heads(_FIXED, 2, 4, 1, 3, 3, 3)),
        case("four heads, four key heads", *_heads(_FIXED, 1, 4, 4, 3, 3, 4)),
        case("one new token, five keys", *_heads(_FIXED, 1, 4, 2, 1, 5, 4)),
        edge(case("bf16", *_whole(Random(8)))),
        case("five heads cannot share two", *_heads(_FIXED, 1, 5, 2, 2, 2, 4)),
    ],
    hidden_cases=_cases,
    hints=[
        "With h query heads and g key heads, h / g query heads share each key head. Which ones? Neighbours.",
        "Give every query head a copy of its key head. Then it is ordinary attention, which you have written already.",
        'repeat(k, "b g t d -> b (g group) t d", group=...) puts the copies of one key head side by side.',
    ],
    forbid=[".scaled_dot_product_attention", ".multi_head_attention_forward", "torch.nn.MultiheadAttention"],
    uses=["causal_attention"],
)


@grouped_query_attention.variant
def a_key_head_for_each_query_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if q.shape[1] % k.shape[1]:
        raise ValueError("the number of key heads must divide the number of query heads")
    group = q.shape[1] // k.shape[1]
    shared = torch.arange(q.shape[1]) // group
    scores = q @ k[:, shared].mT / q.shape[-1] ** 0.5
    s, t = scores.shape[-2:]
    visible = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    return scores.masked_fill(~visible, -torch.inf).softmax(dim=-1) @ v[:, shared]


grouped_query_attention.slips(
    a_key_head_for_each_query_head,
    {
        "// group → % k.shape[1]": "Your key heads take turns, 0 1 0 1 …: that is what `Tensor.repeat` does. "
        "Neighbouring query heads share one: 0 0 1 1, and so on.",
        "q @ k → q.unflatten(1, (group, -1)).transpose(1, 2).flatten(1, 2) @ k": "You split the query heads into "
        "(group, g), so that neighbours get different key heads. The key head comes first: (g, group).",
        "v[:, shared] → v[:, torch.arange(q.shape[1]) % k.shape[1]]": "Keys and values disagree: a query head reads "
        "the keys of one group and the values of another.",
        "// group → * 0": "Every query head uses the first key head. That is MQA, but k has more heads than one.",
        "k[:, shared] → k.mean(dim=1, keepdim=True) ;; v[:, shared] → v.mean(dim=1, keepdim=True)": "You average the "
        "key heads into one. Each group of queries keeps its own.",
        "q @ k → q.unflatten(1, (-1, group)).mean(dim=2)[:, shared] @ k": "You average the queries of a group. They "
        "share keys and values, but each asks its own question.",
        "q @ k[:, shared] → q[:, ::group] @ k ;; v[:, shared] → v": "You return only as many heads as there are key "
        "heads; the other query heads are lost.",
        "torch.arange(q.shape[1]) // group → (torch.arange(1, q.shape[1] + 1) // "
        "group).clamp(max=k.shape[1] - 1)": "Your groups are shifted by one head at their borders. Count heads from 0: "
        "the first group is 0 to h / g − 1.",
        " / q.shape[-1] ** 0.5 → ": "Your scores are not divided by √d. Sharing keys does not change their spread.",
        "tril(t - s) → tril()": "With fewer queries than keys your mask begins at position 0. The queries are the last "
        "s of the t tokens.",
        ".masked_fill(~visible, -torch.inf) → ": "The future is not hidden: the same causal mask holds for all heads.",
        "if q.shape[1] % k.shape[1] → if False ;; // group → * k.shape[1] // q.shape[1]": "If the query heads do not "
        "divide evenly among the key heads, you drop or repeat some of them silently. Raise a ValueError.",
    },
)


@grouped_query_attention.variant
def head_after_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heads, key_heads = q.shape[1], k.shape[1]
    if heads % key_heads != 0:
        raise ValueError("uneven")
    past = k.shape[2] - q.shape[2]
    results = []
    for head in range(heads):
        shared = head * key_heads // heads
        scores = q[:, head] @ k[:, shared].transpose(1, 2) / math.sqrt(q.shape[3])
        scores = scores + torch.full_like(scores, -torch.inf).triu(past + 1)
        results.append(torch.softmax(scores, dim=2) @ v[:, shared])
    return torch.stack(results, dim=1)


@grouped_query_attention.variant
def softmax_in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if q.shape[1] % k.shape[1] != 0:
        raise ValueError("uneven")
    k, v = (torch.repeat_interleave(y, q.shape[1] // k.shape[1], dim=1) for y in (k, v))
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
    scores = scores + torch.full_like(scores, float("-inf")).triu(k.shape[2] - q.shape[2] + 1)
    return torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)


@grouped_query_attention.variant
def an_axis_for_the_group(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    batch, heads, new, width = q.shape
    key_heads, context = k.shape[1:3]
    if heads != heads // key_heads * key_heads:
        raise ValueError("uneven")
    grouped = q.reshape(batch, key_heads, heads // key_heads, new, width)
    scores = torch.einsum("bgrid,bgjd->bgrij", grouped, k) / width**0.5
    hidden = torch.arange(context) > torch.arange(new).unsqueeze(1) + context - new
    scores[..., hidden] = -torch.inf
    return torch.einsum("bgrij,bgjd->bgrid", scores.softmax(-1), v).reshape(batch, heads, new, width)


@grouped_query_attention.variant
def copies_in_doubles(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if q.shape[1] % k.shape[1] > 0:
        raise ValueError("uneven")
    keys, values = (each.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1) for each in (k, v))
    scores = torch.matmul(q.double(), keys.mT) * q.shape[-1] ** -0.5
    visible = torch.ones(scores.shape[-2:]).tril(scores.shape[-1] - scores.shape[-2])
    raised = torch.exp(scores - scores.amax(-1, keepdim=True)) * visible
    return (raised @ values / raised.sum(-1, keepdim=True)).to(q.dtype)
