"""The exercise on the largest possible score under QK-norm."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def by_the_largest_product(gamma_q: Tensor, gamma_k: Tensor) -> float:
    d = len(gamma_q)
    largest = (gamma_q * gamma_k).abs().max()
    return math.sqrt(d) * largest.item()


def _planted(name: str, random: Random, d: int) -> Case:
    """A case with random scales: the largest product is negative, and neither of its scales is the largest of its
    vector."""
    gamma_q, gamma_k = ([random.choice([-1, 1]) * random.uniform(0.2, 1) for _ in range(d)] for _ in range(2))
    first, second, third = random.sample(range(d), 3)
    gamma_q[first], gamma_k[first] = 2.0, -2.0
    gamma_q[second], gamma_k[second] = 3.0, 1.2
    gamma_q[third], gamma_k[third] = -0.9, -4.0
    return case(name, *(torch.tensor(gamma, dtype=torch.float64) for gamma in (gamma_q, gamma_k)))


def _bounds(random: Random) -> list[Case]:
    return [
        case("a head of one feature", torch.tensor([2.0]), torch.tensor([-3.0])),
        case("two features", torch.tensor([0.5, -1.0]), torch.tensor([4.0, -1.0])),
        case("negative scales", torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([2.0, 2.0, 1.0])),
        case("scales of zero", torch.zeros(4), torch.ones(4)),
        *(_planted("other widths", random, d) for d in (3, 5, 33, 128)),
    ]


max_logit_bound = Exercise(
    "max_logit_bound",
    points=2,
    minutes=6,
    difficulty=3,
    reference=by_the_largest_product,
    cases=[
        case("a head of 64, all scales 1", torch.ones(64), torch.ones(64)),
        case("a head of 128, all scales 2", torch.full((128,), 2.0), torch.full((128,), 2.0)),
        case("scales that differ", torch.tensor([3.0, 1.0, 0.5, 1.0]), torch.tensor([0.5, 0.75, 4.0, 1.0])),
        case("a negative scale", torch.tensor([-2.0, 1.0, 1.0, 1.0]), torch.tensor([1.5, 1.0, 1.0, 1.0])),
    ],
    hidden_cases=_bounds,
    hints=[
        "Before the scales, both vectors have length √d, so their product is at most d (Cauchy–Schwarz inequality).",
        "The score is Σ γ_q[i] γ_k[i] x[i] y[i] / √d. In which features should x and y be long to make it large?",
        "All of it on one feature, the one with the largest |γ_q γ_k|. Which single term of the sum is left then?",
    ],
    tolerance=Tolerance(5e-7),  # a product and a root in float32
)


max_logit_bound.variant(by_the_largest_product)

max_logit_bound.slips(
    by_the_largest_product,
    {
        "math.sqrt(d) → d": "You multiply by d. The scores are still divided by √d, so √d is left.",
        "math.sqrt(d) * → 1 / math.sqrt(d) *": "You assume vectors of length 1. A root mean square of 1 means length "
        "√d.",
        "math.sqrt(d) * → ": "The factor √d is missing: two vectors of length √d, divided by √d.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.abs().max() * gamma_k.abs().max()": "You multiply the two largest "
        "scales. They may belong to different features; the score contains only products γ_q γ_k of the same feature.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.max() * gamma_k.max()": "You multiply the two largest scales, with "
        "their signs. A score contains only products γ_q γ_k of the same feature, and their absolute values count.",
        "(gamma_q * gamma_k).abs().max() → torch.maximum(gamma_q.abs(), gamma_k.abs()).max() ** 2": "You square the "
        "largest scale of all. A score contains products γ_q γ_k of the same feature.",
        ".abs().max() → .norm() ;; math.sqrt(d) * → ": "You take the length of the vector of products, the root of the "
        "sum of their squares. The largest score comes from one feature: √d times the largest product.",
        ".abs() → ": "You take the largest product with its sign. A negative scale also gives large scores: take its "
        "absolute value.",
        ".max() → .mean()": "You assume that all features are equal. A vector may have all of its length in one "
        "feature.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.norm() * gamma_k.norm() / d": "You apply the Cauchy–Schwarz "
        "inequality to the two vectors of scales. That holds only for equal scales: a vector may have all of its "
        "length in one feature.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.norm() * gamma_k.norm() ;; math.sqrt(d) * → ": "You multiply the "
        "lengths of the two vectors of scales. A score contains only products γ_q γ_k of the same feature, and a "
        "vector may have all of its length in one.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.norm() * gamma_k.norm()": "You multiply the lengths of the two "
        "vectors of scales, and by √d. A score contains only products γ_q γ_k of the same feature, and a vector may "
        "have all of its length in one.",
        ".abs().max() → .mean()": "You average the products of the scales. The largest score belongs to the feature "
        "with the largest product.",
        "gamma_q * gamma_k → gamma_q * gamma_q": "You use the scales of the queries twice. The keys have scales of "
        "their own, gamma_k.",
        "(gamma_q * gamma_k).abs().max() → gamma_q.abs().mean() * gamma_k.abs().mean()": "You multiply two mean "
        "scales. The score is largest in one feature: take its product.",
    },
)


@max_logit_bound.variant
def with_numpy(gamma_q: Tensor, gamma_k: Tensor) -> float:
    largest: float = np.abs(gamma_q.numpy() * gamma_k.numpy()).max()
    return math.sqrt(gamma_q.numel()) * largest
