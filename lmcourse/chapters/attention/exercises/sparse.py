"""Exercises on masks that hide more than the future."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

# sliding_window_mask ---------------------------------------------------------------------------------------------


def _window(s: int, t: int, window: int) -> Tensor:
    """Pair by pair, by the distance back from the query at position t − s + i."""
    if window < 1:
        raise ValueError(f"a window holds at least the token itself, not {window}")
    return torch.tensor([[0 <= t - s + query - key < window for key in range(t)] for query in range(s)])


def _window_cases(random: Random) -> list[Case]:
    n, window, more = random.randint(6, 12), random.randint(2, 4), random.randint(2, 5)
    return [
        case("other sizes", n, n, window),
        case("other sizes", n + 3, n + 3, window + 1),
        case("fewer queries than keys", more, n + more, window),
        case("fewer queries than keys", 1, n, window),
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
    forbid=["torch.nn"],
)


def _distance(s: int, t: int, window: int) -> Tensor:
    if window < 1:
        raise ValueError("a window holds at least the token itself")
    return torch.arange(t - s, t)[:, None] - torch.arange(t)


@sliding_window_mask.misconception(
    "Your window is one token too long: `window` counts the token itself and window − 1 before it."
)
def one_too_many(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance >= 0) & (distance <= window)


@sliding_window_mask.misconception("Your window leaves out the token itself: it looks only at those before.")
def without_itself(s: int, t: int, window: int) -> Tensor:
    distance = _distance(s, t, window)
    return (distance > 0) & (distance < window)


@sliding_window_mask.misconception("Your window reaches into the future as well: a decoder's window looks back only.")
def both_ways(s: int, t: int, window: int) -> Tensor:
    return _distance(s, t, window).abs() < window


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


@sliding_window_mask.misconception("A window below 1 holds not even the token itself: raise a ValueError.")
def any_window(s: int, t: int, window: int) -> Tensor:
    distance = torch.arange(t - s, t)[:, None] - torch.arange(t)
    return (distance >= 0) & (distance < window)


# strided_mask ----------------------------------------------------------------------------------------------------


def _strided(length: int, stride: int) -> Tensor:
    """Row by row: the last `stride` tokens, and then every stride-th further back."""
    seen = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        seen[query, max(0, query - stride + 1) : query + 1] = True
        seen[query, query % stride : query + 1 : stride] = True
    return seen


def _strided_cases(random: Random) -> list[Case]:
    stride = random.randint(2, 4)
    return [
        case("other sizes", random.randint(9, 14), stride),
        case("other sizes", random.randint(15, 20), stride + 1),
        case("a long text", random.randint(40, 60), random.randint(5, 7)),
        case("a stride of one", random.randint(3, 7), 1),
        case("a stride longer than the text", random.randint(3, 5), random.randint(7, 9)),
    ]


strided_mask = Exercise(
    "strided_mask",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_strided,
    cases=[
        case("eight tokens, a stride of three", 8, 3),
        case("nine tokens, a stride of four", 9, 4),
        case("a stride of one sees everything", 4, 1),
        case("a stride longer than the text", 3, 5),
    ],
    hidden_cases=_strided_cases,
    hints=[
        "Two patterns in one mask: the last `stride` tokens, and every token whose distance is a multiple of the "
        "stride. A key is seen if either says so.",
        "distance < stride, or distance % stride == 0; and never the future.",
    ],
    forbid=["torch.nn"],
)


def _back(length: int) -> Tensor:
    return torch.arange(length)[:, None] - torch.arange(length)


@strided_mask.misconception("That is the window alone: nothing further back than `stride` tokens is seen.")
def window_only(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back < stride)


@strided_mask.misconception("That is the stride alone: the nearest tokens, which matter most, are skipped.")
def stride_only(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back % stride == 0)


@strided_mask.misconception("You join the two patterns with 'and'. A key is seen if either of them says so.")
def both_required(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & (back < stride) & (back % stride == 0)


@strided_mask.misconception(
    "Your far keys stand in fixed columns, the same for all queries. Here the pattern moves with the query: its "
    "*distance* is a multiple of the stride."
)
def fixed_columns(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & ((back < stride) | (torch.arange(length) % stride == 0))


@strided_mask.misconception("The future is visible: the pattern is cut at the diagonal.")
def both_directions(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back.abs() < stride) | (back % stride == 0)


@strided_mask.misconception("Your stride is counted from the end of the window, so it is one off further back.")
def stride_one_off(length: int, stride: int) -> Tensor:
    back = _back(length)
    return (back >= 0) & ((back < stride) | (back % stride == stride - 1))
