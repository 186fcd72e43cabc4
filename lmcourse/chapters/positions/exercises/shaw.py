"""The exercise on Shaw's relative vectors. An offset is key − query: negative for the past."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _offsets(length: int) -> Tensor:
    return torch.arange(length) - torch.arange(length)[:, None]


def _with_index(q: Tensor, k: Tensor, vectors: Tensor, index: Tensor) -> Tensor:
    """The definition, word by word: every pair gets a key of its own, k_j + a_ij. An s × s × d tensor."""
    keys = k[:, None, :, :] + vectors[index]
    scores: Tensor = (q[:, :, None, :] * keys).sum(dim=-1) / q.shape[-1] ** 0.5
    return scores


def _shaw(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    clip = vectors.shape[0] // 2
    return _with_index(q, k, vectors, _offsets(q.shape[1]).clamp(-clip, clip) + clip)


def _shaw_inputs(random: Random, heads: int, length: int, d: int, clip: int) -> tuple[Tensor, Tensor, Tensor]:
    shape = (heads, length, d)
    return normal(random, *shape), normal(random, *shape), normal(random, 2 * clip + 1, d)


def _shaw_cases(random: Random) -> list[Case]:
    wide = _shaw_inputs(random, 2, random.randint(5, 9), random.randint(3, 8), 2)
    return [
        case("other shapes", *_shaw_inputs(random, 3, random.randint(6, 12), random.randint(2, 7), 4)),
        case("other precisions", *(tensor.double() for tensor in wide)),
        case("a text shorter than the clip", *_shaw_inputs(random, 2, 3, 4, random.randint(5, 9))),
        case("one token", *_shaw_inputs(random, 1, 1, 4, random.randint(1, 3))),
    ]


_STILL = (torch.zeros(1, 4, 1), torch.zeros(1, 4, 1), torch.tensor([[-1.0], [0.0], [1.0]]))
_ONES = (torch.ones(1, 4, 1), *_STILL[1:])

shaw_scores = Exercise(
    "shaw_scores",
    points=3,
    minutes=9,
    difficulty=3,
    reference=_shaw,
    cases=[
        case("queries of 1, keys of 0: only a shows", *_ONES),
        case("two heads, clipped at 2", *_shaw_inputs(Random(9), 2, 6, 4, 2)),
        case("no vector but the one for 0", *_shaw_inputs(Random(10), 1, 3, 4, 0)),
    ],
    hidden_cases=_shaw_cases,
    hints=[
        "q·(k + a) = q·k + q·a. The first part is the usual product. For the second, how many different a are there?",
        "Multiply q with all 2K + 1 vectors first: q @ vectors.T has the shape (h, s, 2K + 1).",
        "Then pick, for every pair, the column that belongs to its offset: index = clamp(j − i, −K, K) + K, and "
        "per_vector.gather(-1, index.expand(h, s, s)). Divide the sum of both parts by √d.",
    ],
    forbid=["torch.nn"],
)


@shaw_scores.misconception("Your offsets run backwards: they are key minus query, j − i, negative for the past.")
def backwards(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    return _shaw(q, k, vectors.flip(0))


@shaw_scores.misconception("You scale the content only. The whole sum q·k + q·a is divided by √d.")
def position_unscaled(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    return _shaw(q, k, vectors * q.shape[-1] ** 0.5)


@shaw_scores.misconception("The scores are not divided by √d.")
def unscaled(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    scores: Tensor = _shaw(q, k, vectors) * q.shape[-1] ** 0.5
    return scores


@shaw_scores.misconception(
    "You use the clipped offset as an index without adding K. Python takes −1 for the last vector, without a word."
)
def not_counted_from_zero(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    clip = vectors.shape[0] // 2
    return _with_index(q, k, vectors, _offsets(q.shape[1]).clamp(-clip, clip))


@shaw_scores.misconception("Far offsets wrap around to other vectors. They should all share the outermost one: clamp.")
def wrapped(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    clip = vectors.shape[0] // 2
    return _with_index(q, k, vectors, (_offsets(q.shape[1]) + clip) % len(vectors))


@shaw_scores.misconception("You multiply a with the keys. It is added to the key, so it meets the query: q·a.")
def key_times_vector(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    return _shaw(q, k, 0 * vectors) + _shaw(k, 0 * k, vectors.flip(0)).transpose(-1, -2)


@shaw_scores.misconception("Past and future share your vectors. The sign of the offset counts: there are 2K + 1.")
def distance_without_sign(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    clip = vectors.shape[0] // 2
    return _with_index(q, k, vectors, _offsets(q.shape[1]).abs().clamp(max=clip) + clip)
