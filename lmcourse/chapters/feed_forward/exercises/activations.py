"""Exercises on the functions between the two matrices: GELU and squared ReLU."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.feed_forward.exercises.inputs import FIVE_INPUTS
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

# gelu ------------------------------------------------------------------------------------------------------------


def _gelu(x: Tensor) -> Tensor:
    return x.double().mul(torch.special.ndtr(x.double())).to(x.dtype)


def _gelu_cases(random: Random) -> list[Case]:
    return [
        case("other shapes", normal(random, 7, scale=2.0)),
        case("other shapes", normal(random, 2, 3, 5, scale=2.0)),
        case("other shapes", torch.tensor(random.gauss(0, 1))),
        case("other precisions", normal(random, 4, 6, scale=2.0).double()),
        case("other precisions", normal(random, 40, scale=2.0).half()),
        case("other precisions", normal(random, 40, scale=2.0).bfloat16()),
        case("the negative tail", torch.tensor([random.uniform(-5, -2) for _ in range(20)]).half()),
        case("far from zero", normal(random, 8, scale=1e4)),
        case("far from zero", normal(random, 8, scale=1e30)),
    ]


gelu = Exercise(
    "gelu",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_gelu,
    cases=[
        case("five numbers", FIVE_INPUTS),
        case("a matrix", torch.tensor([[0.5, -0.5], [2.0, -2.0]])),
        case("far from zero", torch.tensor([-40.0, 40.0])),
        case("double precision", FIVE_INPUTS.double()),
        case("half precision", torch.tensor([-3.0, -2.5, -2.0, 1.5], dtype=torch.float16)),
    ],
    hidden_cases=_gelu_cases,
    hints=[
        "Φ(x) is the chance that a standard normal number is below x. torch.erf gives it, up to scale and shift.",
        "Φ(x) = (1 + erf(x / √2)) / 2.",
        "In fp16, 1 + erf(x/√2) of a negative x is a difference of nearly equal numbers. Compute in fp32 "
        "(x.float()), and cast at the end.",
    ],
    forbid=[".gelu", "torch.nn", ".ndtr", ".log_ndtr", "numpy"],
)


@gelu.misconception(
    "That is the tanh approximation (0.044715). It is off by up to 0.0005: the exact GELU has the error function."
)
def tanh_approximation(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


@gelu.misconception("That is x·σ(1.702x), the sigmoid approximation: it is off by up to 0.02.")
def sigmoid_approximation(x: Tensor) -> Tensor:
    return (x.double() * (1.702 * x.double()).sigmoid()).to(x.dtype)


@gelu.misconception("That is Φ(x), the gate alone. GELU multiplies x by it.")
def gate_alone(x: Tensor) -> Tensor:
    gate: Tensor = torch.special.ndtr(x.double())
    return gate.to(x.dtype)


@gelu.misconception("You use the normal density φ(x). The gate is the cumulative distribution Φ(x).")
def density(x: Tensor) -> Tensor:
    wide = x.double()
    return (wide * (-(wide**2) / 2).exp() / math.sqrt(2 * math.pi)).to(x.dtype)


@gelu.misconception("erf(x) belongs to a normal distribution of variance ½. For variance 1 it is erf(x / √2).")
def without_root_two(x: Tensor) -> Tensor:
    return (x.double() * (1 + x.double().erf()) / 2).to(x.dtype)


@gelu.misconception("The factor ½ is missing: 1 + erf(…) goes from 0 to 2, and a probability from 0 to 1.")
def not_halved(x: Tensor) -> Tensor:
    return 2 * _gelu(x)


@gelu.misconception(
    "You compute in the input's 16 bits. There 1 + erf(…) loses nearly all its digits for negative x: compute in "
    "fp32, then cast back."
)
def in_sixteen_bits(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + (x / math.sqrt(2)).erf())


@gelu.misconception("You return float32 whatever came in. Compute as you like, but give back the dtype of x.")
def always_float32(x: Tensor) -> Tensor:
    return _gelu(x).float()


# squared_relu ----------------------------------------------------------------------------------------------------


def _squared_relu_cases(random: Random) -> list[Case]:
    return [
        case("other shapes", normal(random, 2, 3, 4, scale=2.0)),
        case("other shapes", torch.tensor(random.uniform(1, 3))),
        case("other precisions", normal(random, 12, scale=2.0).double()),
        case("other precisions", normal(random, 12, scale=2.0).bfloat16()),
        case("other precisions", normal(random, 12, scale=2.0).half()),
        case("far from zero", torch.tensor([-random.uniform(300, 900), random.uniform(3, 200)]).half()),
        case("far from zero", torch.tensor([-random.uniform(1e20, 1e30), random.uniform(1e3, 1e6)])),
    ]


squared_relu = Exercise(
    "squared_relu",
    points=1,
    minutes=3,
    difficulty=1,
    reference=lambda x: F.relu(x.double()).square().to(x.dtype),
    cases=[
        case("five numbers", FIVE_INPUTS),
        case("a matrix", torch.tensor([[0.5, -0.5], [2.0, -2.0]])),
        case("half precision, far from zero", torch.tensor([-300.0, 16.0], dtype=torch.float16)),
    ],
    hidden_cases=_squared_relu_cases,
    hints=["First cut off what is negative (x.clamp(min=0)), then square."],
    forbid=[".relu", "torch.nn", "numpy"],
)


@squared_relu.misconception("You square negative numbers too, and they come out positive. They should become 0.")
def square_alone(x: Tensor) -> Tensor:
    return x.square()


@squared_relu.misconception("That is ReLU. Its square is asked for.")
def not_squared(x: Tensor) -> Tensor:
    return F.relu(x)


@squared_relu.misconception("That is 2·max(0, x), the derivative of what is asked for.")
def its_derivative(x: Tensor) -> Tensor:
    return 2 * F.relu(x)


@squared_relu.misconception("x·|x| keeps the sign: negative numbers come out negative. They should become 0.")
def sign_kept(x: Tensor) -> Tensor:
    return x * x.abs()


@squared_relu.misconception(
    "You square first and multiply by the mask x > 0 afterwards. Where the square overflows that is ∞ · 0, which is "
    "NaN: cut off first."
)
def masked_after_squaring(x: Tensor) -> Tensor:
    return x.square() * (x > 0)
