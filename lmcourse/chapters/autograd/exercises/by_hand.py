"""The exercise on gradients by hand: every node of a linear regression."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.chapters.autograd.exercises.inputs import grads_of
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD

Grads = dict[str, float]


def _by_torch(x: float, y: float, w0: float, w1: float) -> Grads:
    w0_, w1_ = (torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in (w0, w1))
    u = w1_ * x
    y_hat = w0_ + u
    z = y_hat - y
    names = ("z", "y_hat", "u", "w0", "w1")
    return {name: grad.item() for name, grad in zip(names, grads_of(z**2, z, y_hat, u, w0_, w1_), strict=True)}


def _points(random: Random) -> list[Case]:
    def number() -> float:
        return round(random.uniform(-5, 5), 2)

    cases = [case("other points and lines", number(), number(), number(), number()) for _ in range(4)]
    return [*cases, case("a perfect prediction", 2.0, 1.0 + 2 * (slope := number()), 1.0, slope)]


linear_regression_grads = Exercise(
    "linear_regression_grads",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_by_torch,
    cases=[
        case("the point (3, 10)", x=3.0, y=10.0, w0=0.0, w1=2.0),
        case("a prediction that is too high", x=-1.0, y=0.5, w0=2.0, w1=-4.0),
        case("x = 0", x=0.0, y=1.0, w0=0.25, w1=7.0),
    ],
    hidden_cases=_points,
    hints=[
        "Go from the loss backwards: L = z², so the gradient of z is 2z. Each further one is the one before times one "
        "local derivative.",
        "A sum hands its gradient on unchanged, to both of its parents. So do three of these nodes.",
        "u = w1 · x: the local derivative with respect to w1 is x, and so w1 gets u's gradient times x.",
    ],
    forbid=NO_AUTOGRAD,
)


def _wrong_grads(z: float, *, slope: float = 2.0, u: float = 1.0, w1: float) -> Grads:
    grad = slope * z
    return {"z": grad, "y_hat": grad, "u": grad * u, "w0": grad, "w1": grad * u * w1}


@linear_regression_grads.misconception(
    "The derivative of z² is 2z. You have z, which is right for half the squared error."
)
def without_the_two(x: float, y: float, w0: float, w1: float) -> Grads:
    return _wrong_grads(w0 + w1 * x - y, slope=1.0, w1=x)


@linear_regression_grads.misconception("All signs are turned round: z is ŷ − y here, not y − ŷ.")
def sign_of_the_error(x: float, y: float, w0: float, w1: float) -> Grads:
    return _wrong_grads(y - w0 - w1 * x, w1=x)


@linear_regression_grads.misconception(
    "You multiply w1's gradient by w1. The local derivative of u = w1·x with respect to w1 is the *other* factor, x."
)
def own_factor(x: float, y: float, w0: float, w1: float) -> Grads:
    return _wrong_grads(w0 + w1 * x - y, w1=w1)


@linear_regression_grads.misconception(
    "w1 gets u's gradient as it is. On the way from u to w1 lies a product, so it is multiplied by x."
)
def product_like_a_sum(x: float, y: float, w0: float, w1: float) -> Grads:
    return _wrong_grads(w0 + w1 * x - y, w1=1.0)


@linear_regression_grads.misconception(
    "u's gradient already contains x. Between u and ŷ lies a sum: u gets ŷ's gradient unchanged, and x enters after u."
)
def factor_one_node_early(x: float, y: float, w0: float, w1: float) -> Grads:
    return _wrong_grads(w0 + w1 * x - y, u=x, w1=1.0)
