"""The exercise on Shaw's relative vectors. An offset is key − query: negative for the past."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _shaw(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Compute offset by offset, in fp64: all pairs on one diagonal share a vector."""
    length, clip, wide, rows = q.shape[1], len(vectors) // 2, q.double(), vectors.double()
    scores = wide @ k.double().mT
    for offset in range(1 - length, length):
        first = max(0, -offset)
        from_vector = wide @ rows[min(clip, max(-clip, offset)) + clip]
        scores.diagonal(offset, 1, 2).add_(from_vector[:, first : first + length - abs(offset)])
    return (scores / q.shape[-1] ** 0.5).to(q.dtype)


def _shaw_inputs(random: Random, heads: int, length: int, d: int, clip: int) -> tuple[Tensor, Tensor, Tensor]:
    shape = (heads, length, d)
    return normal(random, *shape), normal(random, *shape), normal(random, 2 * clip + 1, d)


def _shaw_cases(random: Random) -> list[Case]:
    seen = Random(7)
    double = (tensor.double() for tensor in _shaw_inputs(seen, 2, 5, 3, 2))
    shapes = [
        _shaw_inputs(seen, 3, 7, 5, 3),
        _shaw_inputs(seen, 1, 2, 3, 1),
        tuple(double),
        _shaw_inputs(seen, 2, 3, 4, 6),
        _shaw_inputs(seen, 2, 1, 4, 2),
        _shaw_inputs(random, 3, random.randint(6, 12), random.randint(2, 7), 4),
        _shaw_inputs(random, 2, 3, 4, random.randint(5, 9)),
    ]
    longer = "numbers made in a longer text: s = 24, d = 128"
    return [*(case("other shapes", *each) for each in shapes), _few(longer, Random(12), 24, 128, "numbers_made")]


def _few(name: str, random: Random, s: int, d: int, count: str) -> Case:
    """A case whose text has s tokens of width d, and that counts numbers."""
    lines = f"""
from lmcourse.exercises.work import {count}
{count}(shaw_scores, q, k, vectors) < {s} * {s} * {d}
shaw_scores(q, k, vectors)[:, 0]
"""
    return script(name, lines, **dict(zip(("q", "k", "vectors"), _shaw_inputs(random, 1, s, d, 3), strict=True)))


shaw_scores = Exercise(
    "shaw_scores",
    points=3,
    minutes=9,
    difficulty=3,
    reference=_shaw,
    differentiable=True,
    cases=[
        case(
            "queries of 1, keys of 0: only a shows",
            torch.ones(1, 4, 1),
            torch.zeros(1, 4, 1),
            torch.tensor([[-1.0], [0.0], [1.0]]),
        ),
        case("two heads, clipped at 2", *_shaw_inputs(Random(9), 2, 6, 4, 2)),
        case("no vector but the one for 0", *_shaw_inputs(Random(10), 1, 3, 4, 0)),
        _few("no tensor of s × s × d numbers: s = 16, d = 32", Random(11), 16, 32, "largest_tensor"),
        _few("fewer than s × s × d numbers in all: s = 16, d = 128", Random(11), 16, 128, "numbers_made"),
    ],
    hidden_cases=_shaw_cases,
    hints=[
        "q·(k + a) = q·k + q·a. The first part is the usual product. For the second, how many different a are there?",
        "Multiply q with all 2K + 1 vectors first: q @ vectors.T has the shape (h, s, 2K + 1).",
        "Then pick, for every pair, the column that belongs to its offset: index = clamp(j − i, −K, K) + K, and "
        "per_vector.gather(-1, index.expand(h, s, s)). Divide the sum of both parts by √d.",
    ],
)


@shaw_scores.variant
def one_hot(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    reach = len(vectors) // 2
    place = torch.arange(q.shape[-2])
    which = torch.clip(place[None, :] - place[:, None], -reach, reach) + reach
    chosen = F.one_hot(which, len(vectors)).to(q.dtype)
    scaled = q / q.shape[-1] ** 0.5
    scores: Tensor = scaled @ k.mT + torch.einsum("hir,ijr->hij", scaled @ vectors.T, chosen)
    return scores


@shaw_scores.variant
def gathered(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    heads, length, d = q.shape
    clip = len(vectors) // 2
    place = torch.arange(length)
    offset = place - place[:, None]
    index = offset.clamp(-clip, clip) + clip
    per_vector = q @ vectors.mT
    relative = per_vector.gather(-1, index.expand(heads, -1, -1))
    scores: Tensor = q @ k.mT + relative
    return scores / d**0.5


shaw_scores.slips(
    gathered,
    {
        "place - place[:, None] → place[:, None] - place": "Your offsets run backwards: they are key minus query, j − "
        "i, negative for the past.",
        "q @ k.mT → q @ k.mT / d**0.5 ;; return scores / d**0.5 → return scores": "You scale the content only. The "
        "whole sum q·k + q·a is divided by √d.",
        " / d**0.5 → ": "The scores are not divided by √d.",
        " + clip →  ;; per_vector.gather(-1, index.expand(heads, -1, -1)) → "
        'torch.einsum("hid,ijd->hij", q, vectors[index])': "You use the clipped offset as an index without adding K. "
        "Python silently reads −1 as the last vector.",
        "offset.clamp(-clip, clip) + clip → (offset + clip) % len(vectors) ;; "
        'per_vector.gather(-1, index.expand(heads, -1, -1)) → torch.einsum("hid,ijd->hij", q, vectors[index])': "Your "
        "far offsets wrap around to other vectors. They should all share the outermost one: clamp.",
        "q @ vectors.mT → k @ vectors.mT || q @ vectors.mT → k @ vectors.mT ;; gather(-1, index.expand(heads, -1, -1)) "
        "→ gather(-1, index.mT.expand(heads, -1, -1)).mT": "You multiply the vectors with the keys. They are added to "
        "the key, so they meet the query: q·a.",
        "offset.clamp(-clip, clip) + clip → offset.clamp(-clip, clip) ;; "
        "per_vector.gather(-1, index.expand(heads, -1, -1)) → per_vector[:, place[:, None], index]": "You pick with "
        "the clipped offset itself. The vector of offset 0 is at place K, so add K.",
        "offset.clamp(-clip, clip) + clip → (offset + clip).clamp(0, clip)": "You limit the index to K, so all later "
        "keys share the vector of offset 0. There are 2K + 1 vectors, up to index 2K.",
        "offset.clamp(-clip, clip) + clip → offset + clip": "You do not clip the offsets, so the far ones have no "
        "vector. Keys that are farther away than K share the outermost one.",
        "+ relative → + relative * (offset.abs() <= clip)": "You add no vector beyond the clip. Keys that are farther "
        "away share the outermost vector.",
        "offset.clamp(-clip, clip) + clip → offset.clamp(0, len(vectors) - 1)": "You give all keys of the past the "
        "first vector. The first vector belongs to offset −K: add K to the offset, then clamp.",
        "+ relative → + relative + (k @ vectors.mT).gather(-1, index.mT.expand(heads, -1, -1)).mT": "You add the "
        "vector to the query as well as to the key. It is added to the key alone: q·k + q·a.",
        "offset.clamp(-clip, clip) → offset.abs().clamp(max=clip) ;; "
        'per_vector.gather(-1, index.expand(heads, -1, -1)) → torch.einsum("hid,ijd->hij", q, vectors[index])': "You "
        "use the same vectors for past and future. The sign of the offset counts: there are 2K + 1 vectors.",
        "+ relative → + relative.mT": "Your relative part is transposed: row i of the scores belongs to query i, in "
        "both parts.",
        "d**0.5 → length**0.5": "You divide by the root of the number of tokens. d is the number of features of a "
        "head.",
        "scores / d**0.5 → (scores / d**0.5).masked_fill(offset > 0, -torch.inf)": "You hide later keys. Return the "
        "scores of all pairs, without a mask.",
        "scores / d**0.5 → (scores / d**0.5).softmax(dim=-1)": "You return weights. Return the scores before the "
        "softmax.",
        "q @ k.mT + relative → relative": "You leave out q·k: the score is the usual product plus q·a.",
        "per_vector.gather(-1, index.expand(heads, -1, -1)) → torch.stack([q[:, i] @ vectors[index[i]].T for i in "
        "range(length)], dim=1)": "The scores are right, but you make a vector of d numbers "
        "for each pair, one query at a time: s × s × d numbers in all. Multiply q with the 2K + 1 vectors first.",
        'per_vector.gather(-1, index.expand(heads, -1, -1)) → torch.einsum("hid,ijd->hij", q, vectors[index])': "The "
        "scores are right, but you make a tensor of s × s × d numbers. Multiply q with the 2K + 1 vectors first.",
    },
)
