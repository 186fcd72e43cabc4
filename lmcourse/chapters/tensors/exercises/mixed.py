"""The exercise on the numbers that end up together when heads are merged without swapping axes."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise

Origins = tuple[Tensor, Tensor]


def _cut_in_memory(heads: int, tokens: int, width: int) -> Origins:
    """List the tokens and heads of all numbers in the order of memory, and cut the list into rows."""
    places = [(t, h) for h in range(heads) for t in range(tokens) for _ in range(width)]
    token, head = torch.tensor(places).T
    return token.view(tokens, -1), head.view(tokens, -1)


def _cases(random: Random) -> list[Case]:
    heads, tokens, width = random.sample(range(2, 8), 3)
    return [
        case("other sizes", 4, 6, 5),
        case("other sizes", 5, 2, 3),
        case("as many heads as tokens", 3, 3, 3),
        edge(case("one token", 4, 1, 2)),
        edge(case("one head", 1, 4, 2)),
        case("heads of width 1", 3, 4, 1),
        case("heads of width 1", 4, 2, 1),
        case("other sizes", heads, tokens, width),
    ]


came_from = Exercise(
    "came_from",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_cut_in_memory,
    cases=[
        case("two heads, two tokens, three features each", 2, 2, 3),
        case("three heads, two tokens", 3, 2, 2),
        case("two heads, six tokens", 2, 6, 2),
        edge(case("one head: nothing is mixed", 1, 3, 2)),
    ],
    hidden_cases=_cases,
    hints=[
        "`reshape` moves nothing here: it cuts the row of numbers into different pieces. In which order are the "
        "numbers of `x` stored in memory?",
        "Head 0 with all its tokens comes first, then head 1. So after how many numbers does the token change, and "
        "after how many the head?",
        "You can let the bug do the work: a tensor of shape (h, s, d) that holds the number of its token everywhere, "
        "reshaped in the same wrong way, says where each token went.",
    ],
)


def _of_flat(heads: int, tokens: int, width: int, token: Tensor, head: Tensor) -> Origins:
    shape = (tokens, heads * width)
    return token.reshape(shape), head.reshape(shape)


def _numbers(heads: int, tokens: int, width: int) -> Tensor:
    return torch.arange(heads * tokens * width)


@came_from.misconception(
    "You describe the correct merge, in which each row holds its own token. Without the swap the rows follow the order "
    "of memory, with all tokens of head 0 first."
)
def right_merge(heads: int, tokens: int, width: int) -> Origins:
    flat = _numbers(heads, tokens, width)
    return _of_flat(heads, tokens, width, flat // (heads * width), flat % (heads * width) // width)


@came_from.misconception("You swapped token and head: the token comes first.")
def head_first(heads: int, tokens: int, width: int) -> Origins:
    token, head = _cut_in_memory(heads, tokens, width)
    return head, token


@came_from.misconception(
    "Your token changes with every number. The features of one token in one head are stored together: d numbers in a "
    "row."
)
def width_forgotten(heads: int, tokens: int, width: int) -> Origins:
    flat = _numbers(heads, tokens, width)
    return _of_flat(heads, tokens, width, flat % tokens, flat // (tokens * width))


@came_from.misconception("Your token does not start again at 0 with the next head.")
def never_starts_again(heads: int, tokens: int, width: int) -> Origins:
    flat = _numbers(heads, tokens, width)
    return _of_flat(heads, tokens, width, flat // width, flat // (tokens * width))


@came_from.misconception("Your head changes after s numbers. Each of its s tokens has d features.")
def head_after_s(heads: int, tokens: int, width: int) -> Origins:
    flat = _numbers(heads, tokens, width)
    return _of_flat(heads, tokens, width, flat // width % tokens, flat // tokens)


@came_from.misconception("Your result has the shape of `x`. Return the shape of the merged tensor: (s, h · d).")
def not_merged(heads: int, tokens: int, width: int) -> Origins:
    token, head = _cut_in_memory(heads, tokens, width)
    return token.view(heads, tokens, width), head.view(heads, tokens, width)


@came_from.misconception(
    "You say where each number goes. The question is the way back: where does the number at each place come from?"
)
def where_it_goes(heads: int, tokens: int, width: int) -> Origins:
    goes = _numbers(heads, tokens, width).view(heads, tokens, width).transpose(0, 1)
    return _of_flat(heads, tokens, width, goes // (heads * width), goes % (heads * width) // width)


@came_from.misconception(
    "Your head changes after h · d numbers, the length of a row. A head's numbers are s · d, all tokens of it."
)
def head_of_the_row(heads: int, tokens: int, width: int) -> Origins:
    flat = _numbers(heads, tokens, width)
    return _of_flat(heads, tokens, width, flat // width % tokens, flat // (heads * width) % heads)


@came_from.variant
def places_divided(heads: int, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    place = torch.arange(tokens * heads * width).view(tokens, heads * width)
    return place // width % tokens, place // (tokens * width)


@came_from.variant
def repeated(heads: int, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    token = torch.arange(tokens).repeat_interleave(width).repeat(heads)
    head = torch.arange(heads).repeat_interleave(tokens * width)
    return token.reshape(tokens, -1), head.reshape(tokens, -1)


@came_from.variant
def number_by_number(heads: int, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    token = torch.zeros(tokens, heads * width, dtype=torch.int64)
    head = torch.zeros(tokens, heads * width, dtype=torch.int64)
    for row in range(tokens):
        for feature in range(heads * width):
            head[row, feature], rest = divmod(row * heads * width + feature, tokens * width)
            token[row, feature] = rest // width
    return token, head


came_from.equivalent_mutant(
    "head = torch.arange(heads)[:, None, None].expand(heads, tokens, width) → "
    "head = torch.arange(heads)[:, None, None].expand(heads, width, tokens)",
    "the head is the same for all tokens and features, and only their number counts",
)
