"""The exercise on attention to earlier tokens."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.attention.exercises.inputs import triple
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute with torch's own attention: add queries for the earlier keys, and drop their rows."""
    past = k.shape[-2] - q.shape[-2]
    padded = F.pad(q, (0, 0, past, 0)).double()
    mixed = F.scaled_dot_product_attention(padded, k.double(), v.double(), is_causal=True)
    return mixed[..., past:, :].to(v.dtype)


def _large(random: Random) -> tuple[Tensor, Tensor, Tensor]:
    """Return whole queries and keys, so that scores in the thousands are exact in any order of summation."""
    return 64 * integers(random, 1, 2, 4, 16), 64 * integers(random, 1, 2, 4, 16), normal(random, 1, 2, 4, 5)


def _half(random: Random) -> tuple[Tensor, ...]:
    """Return inputs in bf16 whose scores are exact and whose values are positive, so that their sums do not cancel."""
    q, k = (integers(random, 1, 2, n, 16, dtype=torch.bfloat16) for n in (3, 5))
    return q, k, integers(random, 1, 2, 5, 4, low=1, high=2, dtype=torch.bfloat16)


def _attention_cases(random: Random) -> list[Case]:
    seen = Random(7)
    b, h, s, t, d = (random.randint(2, 5) for _ in range(5))
    narrow = (*triple(seen, 1, 2, 3, 5, 16)[:2], normal(seen, 1, 2, 5, 3))
    wide = (*narrow[:2], normal(Random(8), 1, 2, 5, 20))
    return [
        case("other shapes", *triple(seen, 2, 3, 5, 5, 3)),
        case("other shapes", *triple(seen, 3, 1, 1, 1, 2)),
        case("fewer queries than keys", *triple(seen, 2, 3, 3, 7, 4)),
        case("values of another width", *narrow),
        case("values of another width", *wide),
        case("other precisions", *_half(seen)),
        case("large scores", *_large(seen)),
        case("other shapes", *triple(random, b, h, t, t, d)),
        case("other shapes", *triple(random, 1, h + 1, s + 2, s + 2, 64)),
        case("fewer queries than keys", *triple(random, b, h, s, s + t, d)),
        case("fewer queries than keys", *triple(random, 2, 3, 1, t + 2, d)),
    ]


_FIXED = Random(4)
_VALUES = torch.tensor([[[[1.0], [3.0]]]])
_TWO = torch.tensor([[[[0.0, 0.0], [2.0, 0.0]]]])

causal_attention = Exercise(
    "causal_attention",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_attention,
    differentiable=True,
    cases=[
        case("two tokens", _TWO, _TWO, _VALUES),
        case("four tokens, two heads", *triple(_FIXED, 1, 2, 4, 4, 3)),
        case("the last two of five tokens", *triple(_FIXED, 2, 2, 2, 5, 5)),
        case("one new token", *triple(_FIXED, 1, 2, 1, 4, 16)),
        case("values wider than keys", *triple(_FIXED, 1, 1, 3, 3, 4)[:2], normal(_FIXED, 1, 1, 3, 6)),
        case("large scores", *_large(_FIXED)),
        edge(case("bf16", *_half(Random(9)))),
        edge(case("scores of −25,600", torch.full((1, 1, 2, 16), 80.0), torch.full((1, 1, 2, 16), -80.0), _VALUES)),
    ],
    hidden_cases=_attention_cases,
    hints=[
        "Scores as before, then hide, then softmax, then average. What must a score be so that its weight is exactly "
        "0?",
        "scores.masked_fill(~visible, -torch.inf), with `visible` from your causal_mask(s, t).",
        'The average of the values: einsum(weights, v, "b h s t, b h t d -> b h s d").',
    ],
    forbid=[".scaled_dot_product_attention", ".multi_head_attention_forward", "torch.nn.MultiheadAttention"],
    uses=["causal_mask"],
)


@causal_attention.variant
def scores_hidden_weights(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s, t = q.shape[-2], k.shape[-2]
    visible = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = scores.masked_fill(~visible, -torch.inf)
    weights = hidden.softmax(dim=-1)
    return weights @ v


causal_attention.slips(
    scores_hidden_weights,
    {
        "weights = hidden.softmax(dim=-1) → weights = scores.softmax(dim=-1) * visible": "You mask after the softmax: "
        "the future has already taken its part of the weights, so rows sum to less than one.",
        "weights = hidden.softmax(dim=-1) → shares = scores.softmax(dim=-1) * visible\n    weights = shares / "
        "shares.sum(dim=-1, keepdim=True)": "You mask after the softmax and bring the rows back to one. If a hidden "
        "score is far above the visible ones, their weights are already 0, and 0/0 is NaN. Mask the scores.",
        "scores.masked_fill(~visible, -torch.inf) → scores + visible": "You add True and False to the scores, and they "
        "count as 1 and 0: nothing is hidden. A hidden score has to become −∞.",
        "scores.masked_fill(~visible, -torch.inf) → scores + ~visible": "You add the mask of the hidden keys to the "
        "scores. True counts as 1, so the future gets more weight, not none. A hidden score has to become −∞.",
        "-torch.inf → 0.0": "You set hidden scores to 0, and e^0 is 1: the future still gets weight. Only −∞ becomes "
        "0.",
        "~visible, → (scores * visible) == 0,": "You hide every score that is 0. A score of a visible key may be 0, "
        "too: fill where the mask is False.",
        "scores.masked_fill(~visible, -torch.inf) → scores + (~visible).to(q.dtype) * -torch.inf": "You multiply a "
        "mask of zeros and ones by −∞, and 0 · ∞ is NaN. Fill, do not multiply.",
        "hidden.softmax → scores.softmax": "Nothing is hidden: every token averages over its future as well.",
        ".tril(t - s) → .tril(t - s + 1)": "Your mask is off by one: each token also sees the next, the one it is "
        "asked to predict.",
        ".tril(t - s) → .tril(t - s - 1)": "A token does not see itself in your mask. The first token then sees "
        "nothing, and a softmax over nothing is NaN.",
        ".tril(t - s) → .triu(t - s)": "Your mask is upside down: tokens see the future and not the past.",
        ".tril(t - s) → .tril()": "With fewer queries than keys your mask starts at position 0; the queries are the "
        "last tokens, not the first.",
        "ones(s, t, → ones(s, s, ;; .tril(t - s) → .tril()": "Your mask is s × s. The scores are s × t: a row per "
        "query, a column per key.",
        " / q.shape[-1] ** 0.5 → ": "The scores are not divided by √d.",
        "** 0.5 → ** 1.0": "You divide by d. The scores' spread is √d.",
        "q.shape[-1] ** 0.5 → v.shape[-1] ** 0.5": "You divide by the root of the values' width. A score is a sum over "
        "the features of q and k.",
        "~visible → visible": "You hide what may be seen and show the rest: your mask is True where a query may look, "
        "so fill where it is False.",
        "-torch.inf → -1e4": "You hide with a large negative number, but scores can be lower still, and then the "
        "future is seen. Use −∞.",
        "softmax(dim=-1) → softmax(dim=-2)": "Your softmax runs over queries: the columns sum to one, not the rows.",
        "weights @ v → weights.sum(dim=-1, keepdim=True) * v[..., t - s :, :]": "You average each token's own value: "
        "Σ_j α_ij v_i. The weights sum to one, so it comes back unchanged.",
    },
)


@causal_attention.variant
def query_by_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    past = k.shape[2] - q.shape[2]
    rows = []
    for i in range(q.shape[2]):
        keys, values = k[:, :, : past + i + 1], v[:, :, : past + i + 1]
        weights = (q[:, :, i : i + 1] @ keys.mT / math.sqrt(q.shape[3])).softmax(dim=-1)
        rows.append(weights @ values)
    return torch.cat(rows, dim=2)


@causal_attention.variant
def a_mask_that_is_added(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s, t = q.shape[2], k.shape[2]
    mask = torch.full((s, t), float("-inf"), dtype=q.dtype).triu(t - s + 1)
    mixed: Tensor = torch.einsum("bhij,bhjd->bhid", torch.softmax(q @ k.mT * q.shape[-1] ** -0.5 + mask, -1), v)
    return mixed


@causal_attention.variant
def softmax_in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
    future = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(k.shape[2] - q.shape[2] + 1)
    scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(weights, v)


@causal_attention.variant
def by_hand_in_its_own_dtype(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s, t = q.shape[-2], k.shape[-2]
    scores = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    hidden = torch.arange(t).view(1, t) > torch.arange(t - s, t).view(s, 1)
    scores = torch.where(hidden, -math.inf, scores)
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised @ v / raised.sum(-1, keepdim=True)


@causal_attention.variant
def one_key_after_the_other(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    batch, heads, new, width = q.shape
    context = k.shape[2]
    result = []
    for i in range(new):
        mixed = torch.zeros(batch, heads, v.shape[3], dtype=torch.float64)
        top, total = torch.full((batch, heads), -math.inf, dtype=torch.float64), torch.zeros(batch, heads)
        for j in range(context - new + i + 1):
            score = (q[:, :, i].double() * k[:, :, j].double()).sum(-1) / width**0.5
            higher = torch.maximum(top, score)
            shrink, weight = (top - higher).exp(), (score - higher).exp()
            total = total * shrink + weight
            mixed = mixed * shrink[..., None] + weight[..., None] * v[:, :, j]
            top = higher
        result.append(mixed / total[..., None])
    return torch.stack(result, dim=2).to(v.dtype)
