"""The exercise on the share of the embedding that is left in the stream."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

PLACEMENTS = ("pre", "post", "double", "output")


def _by_construction(blocks: int, placement: str, ratio: float) -> float:
    """Build the stream from orthogonal vectors: the embedding and each addition have their own axis."""
    if placement not in PLACEMENTS or blocks < 0:
        raise ValueError(f"there is no model with {blocks} blocks and placement {placement!r}")
    stream = np.zeros(2 * blocks + 1)
    stream[0] = 1.0
    for branch in range(1, 2 * blocks + 1):
        # Each addition has a length relative to the stream before it; a post-norm resets the length of the stream to 1.
        stream[branch] = ratio
        if placement == "post":
            stream /= math.sqrt(stream @ stream)
    return float(stream[0] / math.sqrt(stream @ stream))


def _hidden(random: Random) -> list[Case]:
    counts = random.sample(range(20, 90), 6)
    return [
        case("no blocks", 0, "pre", 1.0),
        case("one block", 1, "output", 0.5),
        case("many blocks", 100, "pre", 0.3),
        case("many blocks", 40, "post", 0.8),
        case("placements that leave the stream alone", 7, "double", 2.0),
        case("placements that leave the stream alone", 9, "output", 0.7),
        case("branches that add nothing", 5, "pre", 0.0),
        case("branches that add nothing", 5, "post", 0.0),
        case("unknown names", 3, "none", 1.0),
        case("unknown names", 3, "Post", 1.0),
        case("fewer than no blocks", -1, "pre", 1.0),
        case("fewer than no blocks", -2, "post", 1.0),
        *(
            case("other depths", blocks, PLACEMENTS[index % 4], random.uniform(0.1, 3.0))
            for index, blocks in enumerate(counts)
        ),
    ]


embedding_share = Exercise(
    "embedding_share",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_by_construction,
    cases=[
        case("one block", 1, "pre", 1.0),
        case("four blocks", 4, "pre", 1.0),
        case("four blocks, branches of half the length", 4, "pre", 0.5),
        case("four blocks, post-norm", 4, "post", 1.0),
        case("one block, post-norm, branches of half the length", 1, "post", 0.5),
        case("twelve blocks, post-norm, branches three times as long", 12, "post", 3.0),
        case("two blocks, output norm", 2, "output", 0.1),
        case("six blocks, double norm", 6, "double", 2.0),
        edge(case("no blocks at all", 0, "post", 1.0)),
        edge(case("an unknown placement", 4, "before", 1.0)),
        edge(case("minus one block", -1, "double", 1.0)),
        edge(case("minus two blocks, post-norm", -2, "post", 1.0)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Pythagoras: vectors at right angles add by the squares of their lengths. What are the squares here, and how "
        "many of each are there?",
        "The cosine is the embedding's length in the sum, divided by the length of the sum. Without a post-norm the "
        "sum has the embedding and 2 · blocks vectors of length `ratio`.",
        "A post-norm takes a sum of length √(1 + ratio²) back to 1, and shortens the embedding in it by the same "
        "factor. That happens twice in each block.",
    ],
    tolerance=Tolerance(1e-9),  # the smallest answers are 1e-27, so only a relative tolerance can reject anything
)


@embedding_share.variant
def by_formula(blocks: int, placement: str, ratio: float) -> float:
    if blocks < 0:
        raise ValueError(blocks)
    if placement == "post":
        return (1 + ratio**2) ** -blocks
    if placement in ("pre", "double", "output"):
        return 1 / math.sqrt(1 + 2 * blocks * ratio**2)
    raise ValueError(placement)


@embedding_share.variant
def by_recursion(blocks: int, placement: str, ratio: float) -> float:
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError("unknown placement, or too few blocks")
    if blocks == 0:
        return 1.0
    before = by_recursion(blocks - 1, placement, ratio)
    return before / (1 + ratio**2) if placement == "post" else 1 / math.sqrt(1 / before**2 + 2 * ratio**2)


@embedding_share.variant
def branch_by_branch(blocks: int, placement: str, ratio: float) -> float:
    if placement not in ["output", "double", "post", "pre"] or blocks < 0:
        raise ValueError("unknown")
    own, rest = 1.0, 0.0
    for _ in range(blocks * 2):
        rest += ratio * ratio
        if placement == "post":
            total = own + rest
            own, rest = own / total, rest / total
    return math.sqrt(own / (own + rest))


@embedding_share.variant
def with_torch(blocks: int, placement: str, ratio: float) -> float:
    if placement not in ("pre", "post", "double", "output") or blocks < 0:
        raise ValueError("unknown")
    squares = torch.full((2 * blocks,), ratio**2, dtype=torch.float64)
    if placement == "post":
        return (1 + squares).rsqrt().prod().item()
    return (1 + squares.sum()).rsqrt().item()


embedding_share.slips(
    by_formula,
    {
        "-blocks → (-blocks / 2) ;; 2 * blocks → blocks": "You add one branch per block. A block has two: attention "
        "and the feed-forward layer.",
        "-blocks → (-2 * blocks) ;; math.sqrt → ": "You return the fraction of the *squared* length. The cosine is its "
        "root.",
        "-blocks → (-2 * blocks)": "You count the length after “post” squared. One norm divides by √(1 + ratio²), two "
        "of them by 1 + ratio².",
        "-blocks → (-blocks / 2)": "With “post” you divide once per block. A block has two branches, and a norm after "
        "each of them.",
        "(1 + ratio**2) ** -blocks → 1 / math.sqrt(1 + 2 * blocks * ratio**2)": "You treat “post” like the others. Its "
        "norms shorten the old stream after every addition.",
        'placement == "post" → placement in ("post", "output", "double")': "You treat “output” and “double” like "
        "“post”. Only “post” normalises the stream itself: the other two normalise the branch.",
        'placement == "post" → placement in ("post", "double")': "You treat “double” like “post”. Its second norm is "
        "on the branch, not on the stream.",
        'placement == "post" → placement in ("post", "output")': "You treat “output” like “post”. Its norm is on the "
        "branch, not on the stream.",
        "(1 + ratio**2) ** -blocks → (1 + ratio) ** (-2 * blocks) ;; "
        "math.sqrt(1 + 2 * blocks * ratio**2) → (1 + 2 * blocks * ratio)": "You add lengths. Vectors at right angles "
        "add by the squares of their lengths.",
        "(1 + ratio**2) ** -blocks → (1 + ratio) ** -blocks ;; "
        "math.sqrt(1 + 2 * blocks * ratio**2) → (1 + blocks * ratio)": "You add lengths, one branch a block. Vectors "
        "at right angles add by the squares of their lengths, and a block has two branches.",
        "1 + 2 * blocks * ratio**2 → 2 * blocks * ratio**2 or 1": "Your stream lacks the embedding itself: add its "
        "square, 1, to those of the branches.",
        "(1 + ratio**2) → 2.0 ;; blocks * ratio**2 → blocks": "Your results belong to a ratio of 1. `ratio` gives the "
        "length of each branch.",
        "(1 + ratio**2) → 2.0": "With “post” you assume that the branch is as long as the stream. `ratio` gives its "
        "length.",
        "blocks * ratio**2 → blocks": "Without a post-norm you assume that the branches are as long as the embedding. "
        "`ratio` gives their length.",
        "blocks * ratio**2 → blocks * ratio": "Without a post-norm you add `ratio` itself. Its square adds: 1 + 2 · "
        "blocks · ratio².",
        "2 * blocks * ratio**2 → (2 * blocks * ratio) ** 2": "You add up the lengths of the branches and then square. "
        "They are at right angles: square each length, then add.",
        "(1 + ratio**2) ** -blocks → (1 + 2 * ratio**2) ** (-blocks / 2)": "With “post” you add both branches and "
        "normalise once. There is a norm after each of them.",
        "(1 + ratio**2) → (1 + ratio) ;; blocks * ratio**2 → blocks * ratio": "You add `ratio` where its square "
        "belongs: lengths are squared before they are added.",
        "(1 + ratio**2) → (1 + ratio)": "With “post” you use the ratio itself. Use its square: √(1 + ratio²).",
        "1 / math.sqrt(1 + 2 * blocks * ratio**2) → (1 + ratio**2) ** -blocks": "Without a post-norm your branch "
        "lengths are relative to the stream. There they are `ratio` times the *embedding*.",
    },
)


embedding_share.slips(
    branch_by_branch,
    {
        "own / (own + rest) → rest / (own + rest)": "You return everything *except* the embedding. Return the "
        "embedding's part.",
        "math.sqrt(own / (own + rest)) → round(math.sqrt(own / (own + rest)), 4)": "You round, which leaves the "
        "smallest cosines without digits. Return the number as it is.",
        'placement not in ["output", "double", "post", "pre"] or blocks < 0 → blocks < 0': "You return a result for an "
        "unknown placement. Raise ValueError.",
        " or blocks < 0 → ": "You return a result for −1 blocks. Raise ValueError.",
        'blocks * 2 → blocks * (4 if placement == "double" else 2)': "You count four branches a block in “double”. It "
        "has twice as many norms, but two branches like the others.",
    },
)
