"""The exercise on the mask of a sliding window."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _window(s: int, t: int, window: int) -> Tensor:
    """Compute the mask pair by pair, from the distance back from the query at position t − s + i."""
    if window < 1:
        raise ValueError(f"a window holds at least the token itself, not {window}")
    return torch.tensor([[0 <= t - s + query - key < window for key in range(t)] for query in range(s)])


def _window_cases(random: Random) -> list[Case]:
    n, window, more = random.randint(6, 12), random.randint(2, 4), random.randint(2, 5)
    return [
        case("other sizes", 7, 7, 2),
        case("fewer queries than keys", 3, 8, 4),
        case("fewer queries than keys", 1, 5, 2),
        case("a window as wide as the text", 5, 5, 5),
        case("a window as wide as the text", 5, 5, 4),
        case("a window of one token", 2, 4, 1),
        case("bad input", 4, 4, -1),
        case("other sizes", n, n, window),
        case("other sizes", n + 3, n + 3, window + 1),
        case("fewer queries than keys", more, n + more, window),
        case("fewer queries than keys", 1, 3 * window + 1, window),
        case("a window wider than the text", n, n, n + more),
        case("a window of one token", n, n, 1),
        case("bad input", n, n, -random.randint(1, 5)),
    ]


sliding_window_mask = Exercise(
    "sliding_window_mask",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_window,
    cases=[
        case("six tokens, a window of three", 6, 6, 3),
        case("the last two of six, a window of three", 2, 6, 3),
        case("only itself", 3, 3, 1),
        case("a window wider than the text", 3, 3, 9),
        case("no window", 3, 3, 0),
    ],
    hidden_cases=_window_cases,
    hints=[
        "Start from positions again: the distance from the query back to the key decides everything.",
        "With distance = query position − key position, two conditions: not negative, and less than the window.",
    ],
    uses=["causal_mask"],
)


@sliding_window_mask.variant
def by_distance(s: int, t: int, window: int) -> Tensor:
    if window < 1:
        raise ValueError("a window holds at least the token itself")
    query = torch.arange(t - s, t)[:, None]
    distance = query - torch.arange(t)
    return (distance >= 0) & (distance < window)


sliding_window_mask.slips(
    by_distance,
    {
        "< window) → <= window)": "Your window is one token too long: it should hold the token itself and the window − "
        "1 tokens before it.",
        ">= 0 → > 0": "Your window leaves out the token itself: it holds only the tokens before it.",
        ">= 0 → > 0 ;; < window) → <= window)": "You show the `window` tokens before each token, and not the token "
        "itself. It is the last one of its window.",
        "< window) → < window - 1)": "Your window is one token too short. The token itself and window − 1 tokens "
        "before it are `window` in all.",
        "(distance >= 0) & (distance < window) → distance.abs() < window": "Your window reaches into the future as "
        "well: a decoder's window looks back only.",
        "(distance >= 0) &  → ": "The future is not hidden: the distance back must not be negative.",
        " & (distance < window) → ": "Nothing falls out of your window: that is the causal mask.",
        "distance < window) → query // window == torch.arange(t) // window)": "Your tokens see their own block of "
        "`window` tokens. A window slides: it ends at each token itself.",
        "arange(t - s, t) → arange(s)": "Your first query is at position 0. The queries are the last s of the t "
        "tokens.",
        "(distance < window) → (distance < window + t - s)": "You forget t − s at the far edge of the window. With "
        "fewer queries than keys it reaches up to t − s tokens too far back.",
        "if window < 1 → if False": "A window below 1 does not even hold the token itself: raise a ValueError.",
    },
)


@sliding_window_mask.variant
def row_by_row(s: int, t: int, window: int) -> Tensor:
    if not window >= 1:
        raise ValueError("a window holds at least the token itself")
    mask = torch.full((s, t), False)
    for query in range(s):
        last = t - s + query
        mask[query, max(0, last - window + 1) : last + 1] = True
    return mask


sliding_window_mask.slips(
    row_by_row,
    {
        "max(0, last - window + 1) → last - window + 1": "Near the beginning your rows are empty: a slice that starts "
        "below 0 counts from the end. Start it at max(0, …)."
    },
)
