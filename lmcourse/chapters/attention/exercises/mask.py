"""The exercise on the mask that hides the future."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _mask(s: int, t: int) -> Tensor:
    """Compute the mask pair by pair: query i is at position t − s + i."""
    if s > t:
        raise ValueError(f"{s} queries cannot be the last of {t} tokens")
    seen = [[key <= t - s + query for key in range(t)] for query in range(s)]
    return torch.tensor(seen, dtype=torch.bool).reshape(s, t)


def _mask_cases(random: Random) -> list[Case]:
    n, m = random.randint(5, 12), random.randint(2, 9)
    return [
        case("other lengths", 1, 1),
        case("other lengths", 6, 6),
        case("the last few queries", 3, 7),
        case("the last few queries", 5, 6),
        case("one query", 1, 9),
        case("no query", 0, 6),
        case("no query", 0, 0),
        case("more queries than tokens", 6, 5),
        case("more queries than tokens", 2, 1),
        case("other lengths", n, n),
        case("other lengths", m, m),
        case("the last few queries", m, m + n),
        case("the last few queries", n, n + random.randint(1, 4)),
        case("one query", 1, n),
        case("more queries than tokens", n + m, n),
    ]


causal_mask = Exercise(
    "causal_mask",
    points=2,
    minutes=3,
    difficulty=1,
    reference=_mask,
    cases=[
        case("four tokens", 4, 4),
        case("the last two of five tokens", 2, 5),
        case("one new token", 1, 4),
        case("no query", 0, 3),
        case("three queries, two tokens", 3, 2),
    ],
    hidden_cases=_mask_cases,
    hints=[
        "Write the positions down: the keys are at 0 … t − 1, and the queries are the last s of them.",
        "Query i is at position t − s + i. It may see every key whose position is not larger.",
        "Compare a column of query positions with a row of key positions, or use torch.tril with the right `diagonal`.",
    ],
)


@causal_mask.variant
def a_triangle(s: int, t: int) -> Tensor:
    if s > t:
        raise ValueError("more queries than tokens")
    return torch.ones(s, t, dtype=torch.bool).tril(t - s)


causal_mask.slips(
    a_triangle,
    {
        "tril → triu": "Your mask is upside down: each query sees itself and the tokens after it, not those before it.",
        "t - s) → t - s - 1)": "A token may look at itself, too: your diagonal is hidden, and the first token sees "
        "nothing.",
        "t - s) → t - s + 1)": "Off by one: each token also sees the next one, which is the very token it is asked to "
        "predict.",
        "tril(t - s) → tril()": "Your first query is at position 0. The queries are the last s of the t tokens, so the "
        "first is at t − s.",
        "return torch → return ~torch": "True and False are swapped: here True means 'may look', as in "
        "scaled_dot_product_attention.",
        "ones(s, t, dtype=torch.bool).tril(t - s) → full((s, t), -torch.inf).triu(t - s + 1)": "You return numbers to "
        "add to the scores. Return a mask of True and False.",
        "ones(s, t → ones(t, t ;; tril(t - s) → tril()": "Your mask has a row for every token. Only the last s tokens "
        "are queries.",
        "ones(s, t → ones(t, t ;; tril(t - s) → tril()[-s:]": "With no query, your mask has a row for every token: for "
        "s = 0 the slice [-s:] is [0:], all rows.",
        "if s > t → if False": "There cannot be more queries than tokens: raise a ValueError.",
    },
)


@causal_mask.variant
def by_lists(s: int, t: int) -> Tensor:
    if s > t:
        raise ValueError("more queries than tokens")
    return torch.tensor([[key <= t - s + query for key in range(t)] for query in range(s)]).bool().reshape(s, t)


causal_mask.slips(
    by_lists,
    {
        ".bool().reshape(s, t) → ": "With no query, your tensor has lost its shape and dtype: `torch.tensor([])` has "
        "no columns and is not bool. It should have the shape (0, t)."
    },
)
