"""The exercise on the plain feed-forward layer."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _ffn(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return F.linear(F.relu(F.linear(x, w1.T, b1)), w2.T, b2)


def _layer(random: Random, d: int, n: int) -> list[Tensor]:
    return [normal(random, *shape) for shape in ((d, n), (n,), (n, d), (d,))]


def _ffn_cases(random: Random) -> list[Case]:
    d, n = random.randint(2, 6), random.randint(7, 12)
    return [
        case("other shapes", normal(random, 5, d, scale=2.0), *_layer(random, d, n)),
        case("other shapes", normal(random, 2, 3, d, scale=2.0), *_layer(random, d, n)),
        case("other shapes", normal(random, d, scale=2.0), *_layer(random, d, n)),
        case("narrower than the model", normal(random, 3, n, scale=2.0), *_layer(random, n, d)),
        case("square matrices", normal(random, 4, d, scale=2.0), *_layer(random, d, d)),
        case("double precision", *(part.double() for part in [normal(random, 4, d, scale=2.0), *_layer(random, d, n)])),
    ]


_HAND = [
    torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0]]),
    torch.tensor([0.0, 1.0, -1.0]),
    torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]),
    torch.tensor([0.0, 0.5]),
]
_FIXED = Random(11)

ffn = Exercise(
    "ffn",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_ffn,
    cases=[
        case("one token, by hand", torch.tensor([[1.0, 2.0]]), *_HAND),
        case("three tokens", torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), *_HAND),
        case("as wide as the model", normal(_FIXED, 2, 3, scale=2.0), *_layer(_FIXED, 3, 3)),
        case("two texts of four tokens", normal(_FIXED, 2, 4, 3, scale=2.0), *_layer(_FIXED, 3, 8)),
    ],
    hidden_cases=_ffn_cases,
    hints=[
        "Write the shapes beside each step: (…, d) @ (d, n) + (n) is (…, n).",
        "The ReLU sits between the two matrices, behind the first bias: (x @ w1 + b1).clamp(min=0).",
    ],
    forbid=["torch.nn", "numpy"],
)


@ffn.misconception("There is no ReLU in yours: two matrices in a row are one matrix.")
def no_activation(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return (x @ w1 + b1) @ w2 + b2


@ffn.misconception("Your output passes a ReLU as well. The layer ends with the second bias and may be negative.")
def activation_at_the_end(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return _ffn(x, w1, b1, w2, b2).relu()


@ffn.misconception("You add b1 behind the ReLU. Inside, it moves the point where each neuron switches on.")
def bias_behind_the_activation(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return ((x @ w1).relu() + b1) @ w2 + b2


@ffn.misconception("b1 is not used.")
def first_bias_forgotten(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return (x @ w1).relu() @ w2 + b2


@ffn.misconception("b2 is not used.")
def second_bias_forgotten(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return (x @ w1 + b1).relu() @ w2


@ffn.misconception(
    "You multiply by the transposed matrices, as if W1 were (d_ff, d). Here a token is a row, and W1 is (d, d_ff)."
)
def transposed(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return (x @ w1.T + b1).relu() @ w2.T + b2


@ffn.misconception("You add the input at the end. The residual connection belongs to the block around this layer.")
def residual_inside(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return x + _ffn(x, w1, b1, w2, b2)
