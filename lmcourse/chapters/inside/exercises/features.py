"""The exercise on features that share a few numbers."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _kept(weights: Tensor) -> dict[int, float]:
    """Compute with the matrix of all products."""
    products = weights.T @ weights
    lengths = products.diagonal()
    shares = lengths**2 / (products**2).sum(dim=1)  # |w|² / Σ(ŵ·w_j)², both multiplied by |w|²
    return {i: shares[i].item() for i in range(len(lengths)) if lengths[i] > 0.25}


def _columns(*columns: list[float]) -> Tensor:
    return torch.tensor(columns, dtype=torch.float64).T


def _drawn(name: str, random: Random, room: int, features: int) -> Case:
    return case(name, normal64(random, room, features, scale=0.7))


features_kept = Exercise(
    "features_kept",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_kept,
    cases=[
        case("each has its own number", _columns([1.0, 0.0], [0.0, 0.8])),
        case("an opposite pair", _columns([1.0, 0.0], [-1.0, 0.0], [0.0, 0.9])),
        case("one of length ½ is not kept, and still in the way", _columns([0.9, 0.0], [0.5, 0.0], [0.2, 0.8])),
        _drawn("five features in three numbers", Random(429), 3, 5),
        case("none is kept", _columns([0.1, 0.2], [0.3, 0.0])),
    ],
    hidden_cases=lambda random: [
        _drawn("other sizes", random, 2, 6),
        _drawn("other sizes", random, 4, 4),
        _drawn("one number", random, 1, 3),
        case("a column of zeros", _columns([1.0, 0.5], [0.0, 0.0], [0.5, -1.0])),
        case("one of length ½", _columns([0.0, 0.5], [0.7, 0.5])),
    ],
    tolerance=Tolerance(1e-4, 1e-6),  # single precision is enough
    hints=[
        "The columns of `weights` are the features: weights[:, i]. torch.linalg.vector_norm(weights, dim=0) gives "
        "their lengths.",
        "With direction = w / |w| of a kept feature, (direction @ weights) holds its products with all columns, its "
        "own among them.",
        "share = |w|² / ((direction @ weights) ** 2).sum(): alone in its direction it is |w|² / |w|² = 1.",
    ],
)


@features_kept.variant
def column_by_column(weights: Tensor) -> dict[int, float]:
    lengths = weights.norm(dim=0)
    shares = {}
    for i in range(weights.shape[1]):
        if lengths[i] > 0.5:
            direction = weights[:, i] / lengths[i]
            shares[i] = (lengths[i] ** 2 / (direction @ weights).square().sum()).item()
    return shares


features_kept.slips(
    column_by_column,
    {
        "if lengths[i] > 0.5 → if lengths[i] ** 2 > 0.5": "You compare the square of the length with ½.",
        "if lengths[i] > 0.5 → if weights[:, i].abs().max() > 0.5": "You compare the largest number of a feature with "
        "½. Compare its length.",
        "    return shares →     return dict(enumerate(shares.values()))": "You number the kept features anew. Each "
        "one keeps the number of its column.",
        "        if lengths[i] > 0.5: →         if True:": "You count every feature. Kept are those longer than ½.",
        "weights[:, i] / lengths[i] → weights[:, i]": "Your direction has not the length 1: divide w by |w|.",
        "(direction @ weights).square().sum() → ((direction @ weights).square().sum() - lengths[i] ** 2)": "You leave "
        "the feature itself out of the sum. Alone in its direction, it has a share of 1.",
        "(direction @ weights).square().sum() → (direction @ (weights / lengths.clamp(min=1e-9))).square().sum()": "You"
        " divide all columns by their lengths. Only the feature's own direction has length 1.",
        "(direction @ weights).square().sum() → (direction @ weights).sum() ** 2": "You square the sum. Square the "
        "products first: opposite features would cancel.",
        "(direction @ weights).square().sum() → (direction @ weights).square().mean()": "You take the mean of the "
        "squares. Add them up.",
        "(direction @ weights).square().sum() → (direction @ weights).abs().sum()": "You add absolute values. The "
        "products are squared.",
        "lengths[i] ** 2 / → lengths[i] /": "You divide |w|. The share is |w|² divided by the sum.",
        "direction @ weights → direction @ weights[:, [j for j in range(weights.shape[1]) if lengths[j] > 0.5]]": "You "
        "leave short features out of the sum. They are in the way, too.",
        "= weights.norm(dim=0) → = weights.norm(dim=1) ;; range(weights.shape[1]) → range(len(weights)) ;; weights[:, "
        "i] → weights[i] ;; direction @ weights → direction @ weights.T": "You take rows for features. A feature is a "
        "column of `weights`.",
        "    return shares →     return {i: 1 / share for i, share in shares.items()}": "Your fraction is upside down: "
        "that is the number of features which share the direction.",
    },
)
