"""The exercise on gradients by hand, at every node of a linear regression."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import torch

from lmcourse.chapters.autograd.exercises.inputs import grads_of
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD


def _by_torch(x: float, y: float, w0: float, w1: float) -> dict[str, float]:
    w0_, w1_ = (torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in (w0, w1))
    u = w1_ * x
    y_hat = w0_ + u
    z = y_hat - y
    names = ("z", "y_hat", "u", "w0", "w1")
    return {name: grad.item() for name, grad in zip(names, grads_of(z**2, z, y_hat, u, w0_, w1_), strict=True)}


def _points(random: Random) -> list[Case]:
    def number(sign: int = 1) -> float:
        return round(sign * random.uniform(0.5, 5), 2)

    return [
        case("a perfect prediction", 2.0, 15.0, 1.0, 7.0),
        case("other points and lines", -4.0, -3.0, -1.5, -0.25),
        case("other points and lines", 100.0, 3.0, -1.0, 25.0),
        *(case("other points and lines", number(x), number(), number(w0), number(-1)) for x, w0 in ((1, -1), (-1, 1))),
    ]


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
        "Go from the loss backwards: L = z², so the gradient of z is 2z. Each further gradient is the previous one "
        "times a local derivative.",
        "A sum passes its gradient on unchanged, to both of its parents. Three of these nodes do that.",
        "u = w1 · x: the local derivative with respect to w1 is x, and so w1 gets u's gradient times x.",
    ],
    forbid=NO_AUTOGRAD,
)


@linear_regression_grads.variant
def one_formula_each(x: float, y: float, w0: float, w1: float) -> dict[str, float]:
    w1_grad = 2 * x * x * w1 + 2 * x * (w0 - y)
    return {"w1": w1_grad, **dict.fromkeys(["w0", "u", "y_hat", "z"], 2 * (w0 + w1 * x - y))}


@linear_regression_grads.variant
def local_derivatives_in_a_loop(x: float, y: float, w0: float, w1: float) -> dict[str, float]:
    grads = {"L": 1.0}
    path = [("z", "L", 2 * (w0 - y + x * w1)), ("y_hat", "z", 1), ("u", "y_hat", 1), ("w0", "y_hat", 1), ("w1", "u", x)]
    for node, child, local in path:
        grads[node] = grads.get(node, 0) + local * grads[child]
    del grads["L"]
    return grads


@linear_regression_grads.variant
def exact_fractions(x: float, y: float, w0: float, w1: float) -> dict[str, Fraction]:
    error = Fraction(w0) + Fraction(w1) * Fraction(x) - Fraction(y)
    return {name: 2 * error * (Fraction(x) if name == "w1" else 1) for name in ("z", "y_hat", "u", "w0", "w1")}


@linear_regression_grads.variant
def zero_dimensional_tensors(x: float, y: float, w0: float, w1: float) -> dict[str, torch.Tensor]:
    numbers = torch.tensor([x, y, w0, w1], dtype=torch.float64)
    z = 2 * (numbers * torch.tensor([w1, -1, 1, 0], dtype=torch.float64)).sum()
    return {"z": z, "y_hat": z.clone(), "u": z.clone(), "w0": z.clone(), "w1": z * numbers[0]}


@linear_regression_grads.variant
def node_after_node(x: float, y: float, w0: float, w1: float) -> dict[str, float]:
    u = w1 * x
    z = w0 + u - y
    dz = 2 * z
    dy_hat = dz
    du = dy_hat
    dw0 = dy_hat
    dw1 = du * x
    return {"z": dz, "y_hat": dy_hat, "u": du, "w0": dw0, "w1": dw1}


linear_regression_grads.slips(
    node_after_node,
    {
        "dy_hat = dz → dy_hat = 1.0": "These are local derivatives, each node with respect to its parent. Multiply "
        "each by the gradient that arrives.",
        '"z": dz, "y_hat": dy_hat, "u": du, "w0": dw0, "w1": dw1 → "z": z, "y_hat": w0 + u, "u": u, "w0": w0, "w1": '
        "w1": "These are the values of the nodes. The exercise asks for the derivatives of the loss.",
        "2 * z → z": "The derivative of z² is 2z. You have z, which is right for half the squared error.",
        "w0 + u - y → y - w0 - u": "Every sign is wrong: z is ŷ − y here, not y − ŷ.",
        "du * x → du * w1": "You multiply w1's gradient by w1. The local derivative of u = w1·x with respect to w1 is "
        "the *other* factor, x.",
        "du * x → du": "You give w1 the gradient of u unchanged. Between u and w1 is a product, so multiply by x.",
        "du = dy_hat → du = dy_hat * x ;; du * x → du": "Your gradient of u already contains x. Between u and ŷ is a "
        "sum: u gets ŷ's gradient unchanged, and x enters after u.",
        "w0 + u - y → u - y": "Your prediction lacks w0: ŷ = w0 + u.",
        "dw0 = dy_hat → dw0 = dy_hat * w0": "You multiply w0's gradient by w0. Between w0 and ŷ is a sum: w0 gets it "
        "unchanged.",
    },
)
