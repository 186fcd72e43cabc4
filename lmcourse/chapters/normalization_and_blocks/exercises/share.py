"""The exercise on how much of the embedding is left in the stream."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

PLACEMENTS = ("pre", "post", "double", "output")


def _check(blocks: int, placement: str) -> None:
    if placement not in PLACEMENTS or blocks < 0:
        raise ValueError(f"{blocks} blocks, {placement!r}")


def _by_construction(blocks: int, placement: str) -> float:
    """With vectors that are exactly unrelated: the embedding and each addition along an axis of its own."""
    _check(blocks, placement)
    stream = np.zeros(2 * blocks + 1)
    stream[0] = 1.0
    for branch in range(1, 2 * blocks + 1):
        # What is added is as long as the stream it joins: after a post-norm 1 again, otherwise the embedding's length.
        stream[branch] = 1.0
        if placement == "post":
            stream /= math.sqrt(stream @ stream)
    return float(stream[0] / math.sqrt(stream @ stream))


def _hidden(random: Random) -> list[Case]:
    counts = random.sample(range(20, 90), 6)
    return [
        case("no blocks", 0, "pre"),
        case("one block", 1, "output"),
        case("many blocks", 100, "pre"),
        case("many blocks", 40, "post"),
        case("placements that leave the stream alone", 7, "double"),
        case("placements that leave the stream alone", 9, "output"),
        case("unknown names", 3, "none"),
        case("unknown names", 3, "Post"),
        case("fewer than no blocks", -1, "pre"),
        case("fewer than no blocks", -2, "post"),
        *(case("other depths", blocks, PLACEMENTS[index % 4]) for index, blocks in enumerate(counts)),
    ]


embedding_share = Exercise(
    "embedding_share",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_by_construction,
    cases=[
        case("one block", 1, "pre"),
        case("four blocks", 4, "pre"),
        case("four blocks, post-norm", 4, "post"),
        case("twelve blocks, post-norm", 12, "post"),
        case("two blocks, output norm", 2, "output"),
        case("six blocks, double norm", 6, "double"),
        case("no blocks at all", 0, "post"),
        case("an unknown placement", 4, "before"),
        case("minus one block", -1, "double"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Pythagoras: n unrelated vectors of length 1 make a sum of length √n. How many parts does the stream have?",
        "The cosine is the embedding's length in the sum, divided by the length of the sum. With two branches a block "
        "the sum has 1 + 2 · blocks parts.",
        "A post-norm takes a sum of length √2 back to 1, and the embedding in it with the rest. That happens twice a "
        "block.",
    ],
    tolerance=Tolerance(1e-9),  # the smallest answers are 1e-27: only a relative tolerance says anything of them
)


@embedding_share.variant
def by_formula(blocks: int, placement: str) -> float:
    if blocks < 0:
        raise ValueError(blocks)
    if placement == "post":
        return 2.0**-blocks
    if placement in ("pre", "double", "output"):
        return 1 / math.sqrt(1 + 2 * blocks)
    raise ValueError(placement)


@embedding_share.variant
def by_recursion(blocks: int, placement: str) -> float:
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError("no such model")
    if blocks == 0:
        return 1.0
    before = by_recursion(blocks - 1, placement)
    return before / 2 if placement == "post" else 1 / math.sqrt(1 / before**2 + 2)


@embedding_share.variant
def branch_by_branch(blocks: int, placement: str) -> float:
    if placement not in ["output", "double", "post", "pre"] or blocks < 0:
        raise ValueError("unknown")
    own, rest = 1.0, 0.0
    for _ in range(blocks * 2):
        rest += 1.0
        if placement == "post":
            total = own + rest
            own, rest = own / total, rest / total
    return math.sqrt(own / (own + rest))


@embedding_share.variant
def with_torch(blocks: int, placement: str) -> float:
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError("unknown")
    branches = 2 * blocks
    if placement == "post":
        return torch.full((branches,), 2.0, dtype=torch.float64).rsqrt().prod().item()
    return 1 / math.sqrt(torch.ones(branches + 1, dtype=torch.float64).sum().item())


@embedding_share.misconception("A block adds twice: attention, and the feed-forward layer.")
def one_branch(blocks: int, placement: str) -> float:
    _check(blocks, placement)
    return 2 ** (-blocks / 2) if placement == "post" else 1 / math.sqrt(1 + blocks)


@embedding_share.misconception("That is the share of the *squared* length. A cosine is its root.")
def squared_share(blocks: int, placement: str) -> float:
    return _by_construction(blocks, placement) ** 2


@embedding_share.misconception("One post-norm divides by √2, two of them by 2: that is a half per block.")
def a_quarter_per_block(blocks: int, placement: str) -> float:
    return 4.0**-blocks if placement == "post" and blocks > 0 else _by_construction(blocks, placement)


@embedding_share.misconception("A post-norm shrinks the old stream with every addition. You treat it like the others.")
def post_like_pre(blocks: int, placement: str) -> float:
    return _by_construction(blocks, "pre" if placement == "post" else placement)


@embedding_share.misconception(
    "In “output” and “double” the norm stands on the branch: only “post” normalises the stream itself."
)
def output_like_post(blocks: int, placement: str) -> float:
    return _by_construction(blocks, "post" if placement in ("output", "double") else placement)


@embedding_share.misconception("Unrelated vectors add by squares, not by lengths: the sum of n is √n long.")
def linear(blocks: int, placement: str) -> float:
    _check(blocks, placement)
    return 2.0**-blocks if placement == "post" else 1 / (1 + 2 * blocks)


@embedding_share.misconception(
    "The embedding is in the sum, too: with two additions a block it has 1 + 2 · blocks parts."
)
def embedding_not_counted(blocks: int, placement: str) -> float:
    _check(blocks, placement)
    return 2.0**-blocks if placement == "post" else 1 / math.sqrt(max(1, 2 * blocks))


@embedding_share.misconception("That is what is *not* the embedding. Asked is the embedding's part.")
def the_rest(blocks: int, placement: str) -> float:
    return math.sqrt(1 - _by_construction(blocks, placement) ** 2)


@embedding_share.misconception("An unknown placement is none of the four: raise ValueError.")
def any_name(blocks: int, placement: str) -> float:
    return _by_construction(blocks, placement if placement in PLACEMENTS else "pre")


@embedding_share.misconception("There is no model of −1 blocks: raise ValueError.")
def any_number(blocks: int, placement: str) -> float:
    return _by_construction(max(0, blocks), placement)
