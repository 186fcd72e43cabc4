"""The exercise on the numbers that end up together when heads are merged without swapping axes."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise


def _cut_in_memory(heads: int, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    """List the tokens and heads of all numbers in the order of memory, and cut the list into rows."""
    places = [(t, h) for h in range(heads) for t in range(tokens) for _ in range(width)]
    token, head = torch.tensor(places).T
    return token.view(tokens, -1), head.view(tokens, -1)


def _ask(name: str, heads: int, tokens: int, width: int) -> list[Case]:
    """A case on the tokens and one on the heads, so that one mistake does not cost the points of both."""
    call = f"came_from({heads}, {tokens}, {width})"
    return [script(f"token: {name}", f"{call}[0]"), script(f"head: {name}", f"{call}[1]")]


def _cases(random: Random) -> list[Case]:
    heads, tokens, width = random.sample(range(2, 8), 3)
    return [
        *_ask("other sizes", 4, 6, 5),
        *_ask("as many heads as tokens", 3, 3, 3),
        *map(edge, _ask("one token", 4, 1, 2)),
        *map(edge, _ask("one head", 1, 4, 2)),
        *_ask("heads of width 1", 3, 4, 1),
        *_ask("other sizes", heads, tokens, width),
    ]


came_from = Exercise(
    "came_from",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_cut_in_memory,
    cases=[
        *_ask("two heads, two tokens, three features each", 2, 2, 3),
        *_ask("three heads, two tokens", 3, 2, 2),
        *_ask("two heads, six tokens", 2, 6, 2),
        *map(edge, _ask("one head, nothing is mixed", 1, 3, 2)),
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


@came_from.variant
def places_divided(heads: int, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    place = torch.arange(tokens * heads * width).view(tokens, heads * width)
    return place // width % tokens, place // (tokens * width)


came_from.slips(
    places_divided,
    {
        "place // width % tokens, place // (tokens * width) → place // (heads * width), place % (heads * width) // "
        "width": "You describe the correct merge, in which each row holds its own token. Without the swap the rows "
        "follow the order of memory, with all tokens of head 0 first.",
        "place // width % tokens, place // (tokens * width) → place // (tokens * width), place // width "
        "% tokens": "You swapped token and head: the token comes first.",
        "place // width % tokens → place % tokens": "Your token changes with every number. The features of one token "
        "in one head are stored together: d numbers in a row.",
        " % tokens → ": "Your token does not start again at 0 with the next head.",
        "place // (tokens * width) → place // tokens": "Your head changes after s numbers. Each of its s tokens has d "
        "features.",
        "place // (tokens * width) → place // tokens % heads": "Your head changes after s numbers. Each of its s "
        "tokens has d features.",
        "place // (tokens * width) → place % width": "Your second result numbers the features inside a head. Return "
        "the number of the head.",
        "place // width % tokens, place // (tokens * width) → place / width % tokens, place / (tokens * width)": (
            "You divide with `/`, and get fractions. Numbers of tokens and heads are whole: `//`."
        ),
        "view(tokens, heads * width) → view(heads * width, tokens).T": "You cut the numbers into h · d rows of s, and "
        "turn them. `x.reshape(b, s, h * d)` cuts them into s rows of h · d.",
        "place // width % tokens → place // (heads * width)": "Your head is right. Your token is the row in which "
        "a number ends up, as in the correct merge. Where did it come from?",
        "place // (tokens * width) → place // (heads * width)": "Your head is the row in which a number ends up. A "
        "head's numbers are s · d in memory, and they may fill several rows or a part of one.",
        "view(tokens, heads * width) → view(heads, tokens, width)": "Your result has the shape of `x`. Return the "
        "shape of the merged tensor: (s, h · d).",
        "view(tokens, heads * width) → view(heads, tokens, width).transpose(0, 1).reshape(tokens, -1) ;; "
        "place // width % tokens, place // (tokens * width) → place // (heads * width), place % (heads * "
        "width) // width": "You say where each number goes. The question is the way back: where does the number at "
        "each place come from?",
        "place // (tokens * width) → place // (heads * width) % heads": "Your head changes after h · d numbers, the "
        "length of a row. A head's numbers are s · d, all tokens of it.",
    },
)
