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


def _distance(s: int, t: int, window: int) -> Tensor:
    if window < 1:
        raise ValueError("a window holds at least the token itself")
    return torch.arange(t - s, t)[:, None] - torch.arange(t)


@sliding_window_mask.misconception(
    "Your window is one token too long: it should hold the token itself and the window − 1 tokens before it."
)
def one_too_many(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance >= 0) & (distance <= window)


@sliding_window_mask.misconception("Your window leaves out the token itself: it holds only the tokens before it.")
def without_itself(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance > 0) & (distance < window)


@sliding_window_mask.misconception(
    "You show the `window` tokens before each token, and not the token itself. It is the last one of its window."
)
def window_before_itself(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance > 0) & (distance <= window)


@sliding_window_mask.misconception(
    "Your window is one token too short. The token itself and window − 1 tokens before it are `window` in all."
)
def one_too_few(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance >= 0) & (distance < window - 1)


@sliding_window_mask.misconception("Your window reaches into the future as well: a decoder's window looks back only.")
def both_ways(s: int, t: int, window: int) -> Tensor:
    return _distance(s, t, window).abs() < window


@sliding_window_mask.misconception("The future is not hidden: the distance back must not be negative.")
def future_seen(s: int, t: int, window: int) -> Tensor:
    return _distance(s, t, window) < window


@sliding_window_mask.misconception("Nothing falls out of your window: that is the causal mask.")
def nothing_forgotten(s: int, t: int, window: int) -> Tensor:
    return _distance(s, t, window) >= 0


@sliding_window_mask.misconception(
    "Your tokens see their own block of `window` tokens. A window slides: it ends at each token itself."
)
def blocks(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    same_block = (torch.arange(t - s, t) // window)[:, None] == torch.arange(t) // window
    return (distance >= 0) & same_block


@sliding_window_mask.misconception("Your first query is at position 0. The queries are the last s of the t tokens.")
def queries_at_the_start(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window) - (t - s)
    return (distance >= 0) & (distance < window)


@sliding_window_mask.misconception(
    "You forget t − s at the far edge of the window. With fewer queries than keys it reaches up to t − s tokens too "
    "far back."
)
def far_edge_without_the_offset(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance >= 0) & (distance - (t - s) < window)


@sliding_window_mask.misconception(
    "Near the beginning your rows are empty: a slice that starts below 0 counts from the end. Start it at max(0, …)."
)
def slice_below_zero(s: int, t: int, window: int) -> Tensor:
    if window < 1:
        raise ValueError
    mask = torch.zeros(s, t, dtype=torch.bool)
    for row, query in enumerate(range(t - s, t)):
        mask[row, query - window + 1 : query + 1] = True
    return mask


@sliding_window_mask.misconception("A window below 1 does not even hold the token itself: raise a ValueError.")
def any_window(s: int, t: int, window: int) -> Tensor:
    distance = torch.arange(t - s, t)[:, None] - torch.arange(t)
    return (distance >= 0) & (distance < window)


@sliding_window_mask.variant
def pair_by_pair(s: int, t: int, window: int) -> Tensor:
    if window < 1:
        raise ValueError("a window must hold at least one token")
    rows = []
    for query in range(t - s, t):
        rows.append([query - window < key <= query for key in range(t)])
    return torch.tensor(rows)


@sliding_window_mask.variant
def two_triangles(s: int, t: int, window: int) -> Tensor:
    if window <= 0:
        raise ValueError("a window must hold at least one token")
    ones = torch.ones(s, t, dtype=torch.bool)
    return ones.tril(t - s) ^ ones.tril(t - s - window)


@sliding_window_mask.variant
def row_by_row(s: int, t: int, window: int) -> Tensor:
    if not window >= 1:
        raise ValueError("a window must hold at least one token")
    mask = torch.full((s, t), False)
    for query in range(s):
        last = t - s + query
        mask[query, max(0, last - window + 1) : last + 1] = True
    return mask
