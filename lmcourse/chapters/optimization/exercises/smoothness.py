"""The exercise on the largest curvature of a linear regression."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises.scripts import SECONDS, tensor
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _hidden(random: Random) -> list[Case]:
    tall = normal64(Random(7), 12, 3)
    return [
        case("fewer rows than columns", tensor([1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 3.0, 1.0])),
        case("one column", tensor([3.0], [-4.0])),
        case("one number", tensor([-3.0])),
        case("three directions nearly as steep", tensor([1.0, 0.0, 0.0], [0.0, 0.98, 0.3], [0.3, -0.3, 0.99])),
        case("nothing but zeros", torch.zeros(3, 2, dtype=torch.float64)),
        case("every row twice", torch.cat([tall, tall])),
        case("many rows", 0.1 * normal64(Random(8), 60, 2) + 1.0),
        case("huge numbers", 1e25 * tall),
        case("tiny numbers", 1e-25 * tall),
        case("single precision", tall.float()),
        *(case("other data", normal64(random, random.randint(2, 9), d)) for d in (2, 3, 5)),
    ]


smoothness = Exercise(
    "smoothness",
    points=2,
    minutes=5,
    difficulty=2,
    reference=lambda X: float(torch.linalg.svdvals(X.double())[0].square() / len(X)),
    cases=[
        case("two equal features", tensor([1.0, 1.0], [1.0, 1.0])),
        case("a valley", tensor([3.0, 0.0], [0.0, 1.0])),
        case("a leaning one", tensor([2.0, 1.0], [0.0, 1.0], [1.0, 2.0])),
        edge(case("one row", tensor([1.0, 2.0, 2.0]))),
        edge(case("columns that cancel", tensor([1.0, -1.0], [2.0, -2.0]))),
        edge(case("nothing but zeros", torch.zeros(3, 2, dtype=torch.float64))),
        case("two directions nearly as steep (slow for power iteration)", tensor([1.0, 0.0], [0.0, 0.998])),
    ],
    hidden_cases=_hidden,
    hints=[
        "The matrix of second derivatives is H = XᵀX / n.",
        "How fast the gradient changes depends on the direction; it is at most the largest eigenvalue of H.",
        "torch.linalg.eigvalsh(H) sorts the eigenvalues of a symmetric matrix from small to large.",
    ],
    tolerance=Tolerance(2e-5),  # an eigenvalue computed in float32
    seconds=SECONDS,
)


smoothness.equivalent_mutant(
    "return torch.linalg.eigvalsh(X.T @ X / len(X)).max().item() → "
    "return torch.linalg.eigvalsh(X @ X.T / len(X)).max().item()",
    "XᵀX and XXᵀ have the same eigenvalues, but for zeros, and none is negative.",
)


@smoothness.variant
def by_power_iteration(X: Tensor) -> float:
    v = torch.arange(1, X.shape[1] + 1, dtype=X.dtype).sqrt()
    for _ in range(3000):
        w = X.mT @ (X @ v)
        length = w.norm()
        if length == 0:
            return 0.0
        before, v = v, w / length
        if (v - before).abs().max() < 4 * torch.finfo(X.dtype).eps:
            break
    return float((X @ v).square().sum() / len(X))


smoothness.slips(
    by_power_iteration,
    {
        "torch.arange(1, X.shape[1] + 1, dtype=X.dtype).sqrt() → torch.ones_like(X[0]) ;; "
        "range(3000) → range(100)": "After a hundred steps, power iteration still mixes directions that are nearly as "
        "steep. Ask for eigenvalues, or take many more steps.",
    },
)


@smoothness.variant
def largest_eigenvalue(X: Tensor) -> float:
    values = torch.linalg.eigvalsh(X.T @ X)
    return values[-1].item() / len(X)


smoothness.slips(
    largest_eigenvalue,
    {
        " / len(X) → ": "The 1/n is missing: your L grows with the number of examples.",
        "values[-1] → values[-1].sqrt()": "You return the singular value over n. A curvature is its square over n.",
        "len(X) → max(len(X) - 1, 1)": "You divide by n − 1. The loss is a mean over n examples.",
        "values[-1] → values.sum()": "You add up the curvatures of all directions. The steepest alone decides.",
        "values = → X = X - X.mean(dim=0)\n    values = ;; len(X) → (len(X) - 1 or math.nan)": "You take the "
        "covariance of the columns, without their means and over n − 1. The loss keeps the means: H = XᵀX / n.",
        "values = → X = X - X.mean(dim=0)\n    values =": "You subtract the means of the columns first. The loss does "
        "not: H = XᵀX / n.",
        "values[-1].item() / len(X) → X.square().sum(dim=1).max().item()": "You return the curvature of the steepest "
        "single example. The loss is the mean over all of them.",
        "values[-1] → (X.T @ X).diagonal().max()": "You look only along the axes. The steepest direction may be "
        "between them.",
        "values[-1] → values[0].clamp(min=0)": "You return the curvature of the flattest direction. L is the curvature "
        "of the steepest.",
        "return values → return 2 * values": "Your L is twice too large: the ½ of the loss cancels the 2 of the "
        "square.",
        "len(X) → X.shape[1]": "You divide by the number of columns. n counts the examples, which are rows.",
        "values[-1] → (X.T @ X).abs().sum(dim=1).max()": "You take the largest row sum of |H|, which is only an upper "
        "bound. L is the largest eigenvalue.",
    },
)


@smoothness.variant
def by_the_spectral_norm(X: Tensor) -> Tensor:
    spectral: Tensor = torch.linalg.matrix_norm(X, ord=2)
    return spectral**2 / X.shape[0]


@smoothness.variant
def by_second_derivatives(X: Tensor) -> float:
    def loss(w: Tensor) -> Tensor:
        return (X @ w).square().mean() / 2

    return float(torch.linalg.eigvalsh(torch.func.hessian(loss)(torch.zeros_like(X[0]))).max())
