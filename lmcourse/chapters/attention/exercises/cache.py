"""The exercise on decoding with a cache."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.attention.exercises.inputs import triple
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers

Step = tuple[Tensor, Tensor, Tensor]
"""The result of a step: the new tokens' output, and all keys and values for the next step."""


def _full_pass(q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor) -> Step:
    """Compute without a cache: one causal pass over the whole text, of which only the last rows are returned."""
    keys, values = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
    past = past_k.shape[2]
    queries = F.pad(q, (0, 0, past, 0))
    mixed = F.scaled_dot_product_attention(queries.double(), keys.double(), values.double(), is_causal=True)
    return mixed[:, :, past:].to(q.dtype), keys, values


def _step(random: Random, batch: int, heads: int, past: int, new: int, width: int) -> tuple[Tensor, ...]:
    q, k, v = triple(random, batch, heads, new, past + new, width)
    return q, k[:, :, past:], v[:, :, past:], k[:, :, :past], v[:, :, :past]


def _whole(random: Random) -> tuple[Tensor, ...]:
    """Return inputs whose scores are exact in bf16 and whose values are positive, so that their sums do not cancel."""
    q, k = (integers(random, 1, 2, n, 16, dtype=torch.bfloat16) for n in (2, 5))
    v = integers(random, 1, 2, 5, 16, low=1, high=2, dtype=torch.bfloat16)
    return q, k[:, :, 3:], v[:, :, 3:], k[:, :, :3], v[:, :, :3]


_WRITING = """
keys, values, written = k[:, :, :0], v[:, :, :0], []
for i in range(k.shape[2]):
    new = slice(i, i + 1)
    out, keys, values = attend_with_cache(q[:, :, new], k[:, :, new], v[:, :, new], keys, values)
    written.append(out)
written
keys
values
"""


def _cases(random: Random) -> list[Case]:
    b, h, past, new, d = (random.randint(2, 6) for _ in range(5))
    seen = Random(7)
    names = ("q", "k", "v")
    return [
        case("several new tokens", *_step(seen, 2, 3, 4, 3, 5)),
        case("several new tokens", *_step(seen, 1, 2, 1, 4, 3)),
        case("other shapes", *_step(seen, 2, 3, 6, 1, 2)),
        case("an empty cache", *_step(seen, 2, 1, 0, 3, 4)),
        case("other precisions", *_whole(seen)),
        script("a text, token by token", _WRITING, **dict(zip(names, triple(seen, 2, 2, 5, 5, 3), strict=True))),
        case("other shapes", *_step(random, b, h, past, 1, d)),
        case("other shapes", *_step(random, 1, h, past + 7, 1, 32)),
        case("several new tokens", *_step(random, b, h, past, new, d)),
        case("several new tokens", *_step(random, 1, 2, 2, new + 1, d)),
        case("an empty cache", *_step(random, b, h, 0, new, d)),
    ]


_FIXED = Random(5)

attend_with_cache = Exercise(
    "attend_with_cache",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_full_pass,
    differentiable=True,
    cases=[
        case("the first token, nothing in the cache", *_step(_FIXED, 1, 1, 0, 1, 4)),
        case("one new token, three in the cache", *_step(_FIXED, 1, 2, 3, 1, 5)),
        case("two new tokens, three in the cache", *_step(_FIXED, 1, 2, 3, 2, 3)),
        case("a prompt of four tokens", *_step(_FIXED, 2, 1, 0, 4, 3)),
        edge(case("bf16", *_whole(Random(8)))),
    ],
    hidden_cases=_cases,
    hints=[
        "What does a new token have to see? Everything in the cache, and itself. So the cache grows first.",
        "Use torch.cat([past_k, k], dim=2), the same for the values, and then your attention.",
        "Several new tokens must not see each other's future. Your causal_attention treats the queries as the last "
        "tokens of the text, which is right here.",
    ],
    forbid=[".scaled_dot_product_attention", ".multi_head_attention_forward", "torch.nn.MultiheadAttention"],
    uses=["causal_attention"],
)


@attend_with_cache.variant
def the_cache_grows_first(
    q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    keys, values = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
    s, t = q.shape[2], keys.shape[2]
    visible = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    scores = (q @ keys.mT / q.shape[-1] ** 0.5).masked_fill(~visible, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ values, keys, values


attend_with_cache.slips(
    the_cache_grows_first,
    {
        "t = q.shape[2], keys.shape[2] → t = q.shape[2], q.shape[2] ;; q @ keys.mT → q @ k.mT ;; weights @ values → "
        "weights @ v": "The cache is carried along but not read: your new tokens see only each other.",
        ".tril(t - s) → .tril()": "Your mask forgets how many tokens the cache holds: the first new token is at "
        "position m, not 0. `is_causal=True` makes this mistake, too.",
        "scores.softmax(dim=-1) → torch.cat([part.softmax(dim=-1) for part in scores.split([t - s, s], dim=-1)], "
        "dim=-1)": "You take one softmax over the cache and another over the new tokens. One softmax over all keys "
        "divides a query's attention among them.",
        "scores.softmax(dim=-1) → torch.cat([part.softmax(dim=-1) for part in scores.split([t - s, s], dim=-1)], "
        "dim=-1) / (1 + (t > s))": "You take one softmax over the cache and another over the new tokens, and average. "
        "One softmax over all keys divides a query's attention among them.",
        ".tril(t - s) → .tril(t - s)\n    visible[:, t - s :] = torch.eye(s)": "A new token sees the cache and itself, "
        "but not the new tokens before it. It should see those, too.",
        ".masked_fill(~visible, -torch.inf) → ": "Your new tokens see all tokens after them, as without a mask. For a "
        "single new token this makes no difference.",
        ".tril(t - s) → .tril(t - s - 1)": "Your new tokens do not see themselves. Check the diagonal of your mask, or "
        "add their keys and values to the cache before they look.",
        "[past_k, k] → [k, past_k] ;; [past_v, v] → [v, past_v]": "The new keys are put in front of the old ones. The "
        "cache keeps the order of the text.",
        "values, keys, values → values, k, v": "The output is right, but you return only the new keys and values: the "
        "next step needs all of them.",
        "values, keys, values → values, past_k, past_v": "The output is right, but you return the old cache: the new "
        "keys and values are not in it.",
        " / q.shape[-1] ** 0.5 → ": "The scores are not divided by √d, as they are in the full pass.",
        "q @ keys.mT → q @ past_k.mT ;; .masked_fill(~visible, -torch.inf) →  ;; weights @ values → "
        "weights @ past_v": "Your new tokens look at the old ones only. They look at the cache, at themselves, and at "
        "new tokens before them.",
        "values, keys, values → values, values, keys": "Keys and values are swapped where you return them.",
    },
)


@attend_with_cache.variant
def token_by_token(q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    keys, values, rows = past_k, past_v, []
    for i in range(q.shape[2]):
        keys = torch.cat((keys, k[:, :, i : i + 1]), dim=2)
        values = torch.cat((values, v[:, :, i : i + 1]), dim=2)
        scores = torch.einsum("bhd,bhtd->bht", q[:, :, i], keys) / math.sqrt(q.shape[-1])
        rows.append(torch.einsum("bht,bhtd->bhd", scores.softmax(-1), values))
    return torch.stack(rows, dim=2), keys, values


@attend_with_cache.variant
def softmax_in_float32(
    q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    keys, values = torch.cat([past_k, k], dim=-2), torch.cat([past_v, v], dim=-2)
    scores = torch.matmul(q, keys.transpose(2, 3)) / math.sqrt(q.shape[-1])
    scores = scores + torch.full_like(scores, float("-inf")).triu(past_k.shape[-2] + 1)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, values), keys, values


@attend_with_cache.variant
def memory_for_all_at_once(
    q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    batch, heads, past, width = past_k.shape
    new = k.shape[2]
    keys, values = (torch.empty(batch, heads, past + new, width, dtype=q.dtype) for _ in range(2))
    keys[:, :, :past], keys[:, :, past:] = past_k, k
    values[:, :, :past], values[:, :, past:] = past_v, v
    scores = q @ keys.mT * width**-0.5
    hidden = torch.arange(past + new) > past + torch.arange(new)[:, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=3)
    return weights @ values, keys, values


@attend_with_cache.variant
def past_and_present_apart(
    q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    new = q.shape[2]
    before = torch.exp(q.double() @ past_k.double().mT / q.shape[3] ** 0.5)
    among = torch.exp(q.double() @ k.double().mT / q.shape[3] ** 0.5) * torch.ones(new, new).tril()
    total = before.sum(-1, keepdim=True) + among.sum(-1, keepdim=True)
    out = (before @ past_v.double() + among @ v.double()) / total
    return out.to(q.dtype), torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
