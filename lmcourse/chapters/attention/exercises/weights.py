"""The exercise on attention weights: how much each token looks at each other token."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _weights(q: Tensor, k: Tensor) -> Tensor:
    """Compute with torch's own attention: if the values are unit vectors, the result is the weights."""
    units = torch.eye(k.shape[-2], dtype=torch.float64).expand(*k.shape[:-1], -1)
    return F.scaled_dot_product_attention(q.double(), k.double(), units).to(q.dtype)


def _pair(random: Random, batch: int, heads: int, s: int, t: int, d: int) -> tuple[Tensor, Tensor]:
    return normal(random, batch, heads, s, d), normal(random, batch, heads, t, d)


def _large(random: Random) -> tuple[Tensor, Tensor]:
    """Return whole numbers, so that scores in the thousands are exact in any order of summation."""
    return 16 * integers(random, 1, 2, 3, 16), 16 * integers(random, 1, 2, 4, 16)


def _cases(random: Random) -> list[Case]:
    seen = Random(7)
    b, h, s, t = (random.randint(2, 5) for _ in range(4))
    d = random.randint(11, 16)  # if d were the number of keys, dividing by the wrong one would stay unnoticed
    bf16 = [integers(seen, 1, 2, n, 16, dtype=torch.bfloat16) for n in (3, 4)]
    fp16 = [integers(seen, 1, 2, n, 16, dtype=torch.float16) for n in (3, 4)]
    return [
        case("other shapes", *_pair(seen, 2, 3, 4, 6, 5)),
        case("other shapes", *_pair(seen, 3, 2, 6, 4, 1)),
        case("other shapes", *_pair(seen, 1, 1, 2, 1, 3)),
        case("wide heads", *_pair(seen, 1, 3, 2, 6, 256)),
        case("other precisions", *bf16),
        case("other precisions", *fp16),
        case("large scores", *_large(seen)),
        case("other shapes", *_pair(random, b, h, s, t + s, d)),
        case("other shapes", *_pair(random, b, h + 1, t, t, d)),
        case("other shapes", *_pair(random, 2, 1, 1, 5, 7)),
        case("wide heads", *_pair(random, 1, 2, 4, 4, 64)),
        case("large scores", *_large(random)),
    ]


_FIXED = Random(8)

attention_weights = Exercise(
    "attention_weights",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_weights,
    differentiable=True,
    cases=[
        case("one query, two keys", torch.tensor([[[[2.0, 0, 0, 0]]]]), torch.eye(2, 4).reshape(1, 1, 2, 4)),
        case("four tokens, two heads", *_pair(_FIXED, 1, 2, 4, 4, 8)),
        case("three queries, five keys", *_pair(_FIXED, 2, 2, 3, 5, 8)),
        case("a 64-wide head", *_pair(_FIXED, 1, 1, 4, 4, 64)),
        case("large scores", *_large(_FIXED)),
        edge(case("bf16 stays bf16", *(integers(_FIXED, 1, 1, n, 16, dtype=torch.bfloat16) for n in (2, 3)))),
    ],
    hidden_cases=_cases,
    hints=[
        "Two steps: a dot product of every query with every key, then a softmax. Which axis has to sum to one?",
        'The scores: einsum(q, k, "b h s d, b h t d -> b h s t"). A row of them belongs to one query.',
        "Divide the scores by q.shape[-1] ** 0.5 before the softmax, and take the softmax over the last axis.",
    ],
    forbid=[".scaled_dot_product_attention", ".multi_head_attention_forward", "torch.nn.MultiheadAttention"],
)


@attention_weights.variant
def scores_then_softmax(q: Tensor, k: Tensor) -> Tensor:
    d = q.shape[-1]
    scores = q @ k.mT
    return (scores / d**0.5).softmax(dim=-1)


attention_weights.slips(
    scores_then_softmax,
    {
        "scores / d → scores * d": "You multiply the scores by √d. Divide by it: their spread is √d already.",
        "k.mT → k.reshape(*k.shape[:2], d, -1)": "`reshape` and `view` keep the keys' numbers in their order. The last "
        "two axes of k have to be swapped: `k.mT`.",
        "q @ k.mT → F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT": "You bring queries and keys to length 1, so "
        "only their directions count. A dot product also depends on their lengths.",
        "**0.5 → **0": "The scores are not scaled: the wider the head, the more one key takes everything. Their spread "
        "is √d; bring it back to 1.",
        "**0.5 → **1": "You divide the scores by d. Their spread is √d: dividing by √d brings it back to 1.",
        "d**0.5 → (q.shape[1] * d) ** 0.5": "You scale by the width of all heads together; the sum of a score runs "
        "over one head.",
        "d**0.5 → q.shape[1] ** 0.5": "You scale by the number of heads. The sum of a score has d terms, one per "
        "feature.",
        "d**0.5 → k.shape[-2] ** 0.5": "You scale by the number of keys. It is the width of a head that spreads the "
        "scores.",
        "dim=-1 → dim=-2": "Your columns sum to one: the softmax runs over queries. Each query divides its attention "
        "among keys.",
        "dim=-1 → dim=1": "Your softmax runs over the heads, which is what torch guesses for four axes when no `dim` "
        "is given.",
        "(scores / d**0.5).softmax(dim=-1) → scores.softmax(dim=-1) / d**0.5": "You scale after the softmax, so rows "
        "no longer sum to one. Scale the scores.",
        "q @ k.mT → k @ q.mT": "Your rows are keys and your columns queries: you multiplied k with q, not q with k.",
        "return ( → raised = ( ;; .softmax(dim=-1) → .exp()\n    return raised / raised.sum(dim=-1, "
        "keepdim=True)": "This softmax is written out without subtracting each row's maximum: a score of 100 overflows "
        "to infinity, and ∞/∞ is NaN (notebook 01).",
        "**0.5) → **0.5).float()": "You return float32 whatever came in: give back the dtype of q.",
    },
)


@attention_weights.variant
def softmax_by_hand_in_its_own_dtype(q: Tensor, k: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)).div(math.sqrt(q.size(3)))
    raised = torch.exp(scores - scores.max(dim=3, keepdim=True).values)
    return raised / raised.sum(dim=3, keepdim=True)


@attention_weights.variant
def softmax_in_float32(q: Tensor, k: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)


@attention_weights.variant
def scaled_before_the_product(q: Tensor, k: Tensor) -> Tensor:
    fourth_root = q.shape[-1] ** 0.25
    scores: Tensor = torch.einsum("bhid,bhjd->bhij", q.float() / fourth_root, k.float() / fourth_root)
    return torch.exp(scores - scores.logsumexp(-1, keepdim=True)).to(q.dtype)
