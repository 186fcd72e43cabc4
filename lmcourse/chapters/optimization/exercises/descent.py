"""The exercise on gradient descent in a bowl."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises.scripts import tensor
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _path(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    """In the basis of the eigenvectors, each coordinate has its own recursion: z ← r z + γβ, with r = 1 − γλ."""
    curvature, directions = torch.linalg.eigh(H.double())
    z, pull = directions.T @ start.double(), rate * directions.T @ b.double()
    factor = 1 - rate * curvature
    rows = [factor**k * z + pull * sum((factor**j for j in range(k)), torch.zeros(())) for k in range(steps + 1)]
    return torch.mm(torch.stack(rows), directions.T).to(start.dtype)


def _bowl(random: Random, d: int) -> Tensor:
    """A random symmetric matrix with positive eigenvalues."""
    factor = normal64(random, d, d)
    return factor.T @ factor


def _hidden(random: Random) -> list[Case]:
    saddle = tensor([1.0, 2.0], [2.0, 1.0])
    trough = tensor([1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0])
    leaning = tensor([3.0, 1.0, 0.0], [1.0, 2.0, -1.0], [0.0, -1.0, 4.0])
    fixed = [
        case("a direction without curvature", trough, tensor(1.0, -1.0, 3.0), tensor(1.0, 2.0, 3.0), 0.2, 5),
        case("a saddle", saddle, tensor(0.5, 0.0), tensor(0.25, 1.0), 0.1, 6),
        case("three dimensions", leaning, tensor(1.0, 2.0, -3.0), tensor(4.0, -1.0, 2.0), 0.15, 7),
        case("a rate of zero", leaning, tensor(1.0, 2.0, -3.0), tensor(4.0, -1.0, 2.0), 0.0, 3),
        case("no step", leaning, tensor(1.0, 2.0, -3.0), tensor(4.0, -1.0, 2.0), 0.1, 0),
        case("single precision", saddle.float(), torch.tensor([1.0, 3.0]), torch.tensor([0.5, -2.0]), 0.25, 2),
        case("at the bottom", tensor([2.0, 0.0], [0.0, 4.0]), tensor(2.0, -4.0), tensor(1.0, -1.0), 0.3, 4),
        case("far above 2/L", tensor([4.0]), tensor(0.0), tensor(1.0), 1.0, 25),
    ]
    for d in (1, 2, 4, 6):
        H, b, start = _bowl(random, d), normal64(random, d), normal64(random, d)
        fixed.append(case("other bowls", H, b, start, random.uniform(0.01, 0.1), random.randint(2, 12)))
    return fixed


descend = Exercise(
    "descend",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_path,
    cases=[
        case("one dimension", tensor([2.0]), tensor(2.0), tensor(5.0), 0.25, 3),
        case("a rate of 1/L", tensor([1.0, 0.0], [0.0, 4.0]), tensor(1.0, 4.0), tensor(3.0, 3.0), 0.25, 2),
        case("no step at all", tensor([1.0, 0.0], [0.0, 4.0]), tensor(0.0, 0.0), tensor(3.0, 3.0), 0.25, 0),
        case("a leaning valley", tensor([2.0, 1.0], [1.0, 2.0]), tensor(0.0, 3.0), tensor(1.0, 0.0), 0.5, 3),
        case("far above 2/L", tensor([4.0]), tensor(0.0), tensor(1.0), 1.0, 4),
    ],
    hidden_cases=_hidden,
    hints=[
        "The gradient of this bowl at x is H @ x − b. One step is x − rate · gradient.",
        "Keep a list that begins with the start, and append a *new* tensor in every step: x = x - rate * (H @ x - b).",
        "torch.stack(points) makes a tensor of shape (steps + 1, d) of the list.",
    ],
    forbid=["torch.optim", "torch.autograd", ".backward"],
)

descend.equivalent_mutant(
    "path.append(path[-1] - rate * (H @ path[-1] - b)) → path.append(path[-1] - rate * (path[-1] @ H - b))",
    "H is symmetric: rows or columns, the product is the same.",
)


@descend.variant
def point_after_point(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    path = [start]
    for _ in range(steps):
        x = path[-1]
        gradient = H @ x - b
        path.append(x - rate * gradient)
    return torch.stack(path)


descend.slips(
    point_after_point,
    {
        "x - rate → x + rate": "You add the gradient: that climbs. Descent goes against it.",
        "H @ x - b → H @ x": "Your gradient is Hx alone. The gradient of this bowl is Hx − b.",
        "H @ x - b → H @ x + b": "Your gradient is Hx + b. The bowl is ½xᵀHx − bᵀx, so b comes with a minus.",
        "torch.stack(path) → torch.stack(path)[1:]": "The start is missing. The path begins with it and has steps + 1 "
        "points.",
        "torch.stack(path) → torch.stack(path[-1:] * len(path))": "All rows are the last point: you stored the same "
        "tensor again and again, and changed it.",
        "H @ x → 2 * H @ x": "You step along 2Hx − b. The ½ in front of the square cancels the 2.",
        "H @ x → 0.5 * H @ x": "You step along ½Hx − b. The derivative of ½xᵀHx is Hx, without the ½.",
        "torch.stack(path) → torch.stack(path)[:-1]": "The last point is missing: a start and `steps` steps make steps "
        "+ 1 points.",
        "range(steps) → range(steps - 1)": "The last point is missing: a start and `steps` steps make steps + 1 "
        "points.",
        "rate * gradient → rate * gradient / gradient.norm().clamp(min=1e-12)": "You divide the gradient by its "
        "length. Its length determines how far to step.",
        "H @ x → H @ start": "You use the gradient of the start in every step. Compute it again at each point.",
    },
)


@descend.variant
def coordinate_by_coordinate(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    path = start.new_empty(steps + 1, len(start))
    path[0] = start
    for k in range(steps):
        for i in range(len(start)):
            slope = -b[i]
            for j in range(len(start)):
                slope = slope + H[i, j] * path[k, j]
            path[k + 1, i] = path[k, i] - rate * slope
    return path


@descend.variant
def with_one_matrix(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    move = torch.eye(len(b), dtype=H.dtype) - rate * H
    path = [start]
    while len(path) <= steps:
        path.append(torch.addmv(rate * b, move, path[-1]))
    return torch.vstack(path)


@descend.variant
def with_numpy(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    matrix, vector, x = H.numpy(), b.numpy(), start.numpy().copy()
    rows = [x.copy()]
    for _ in range(steps):
        x -= rate * (matrix.dot(x) - vector)
        rows.append(x.copy())
    return torch.from_numpy(np.array(rows))


@descend.variant
def by_recursion(H: Tensor, b: Tensor, start: Tensor, rate: float, steps: int) -> Tensor:
    def point(k: int) -> Tensor:
        if k == 0:
            return start.clone()
        x = point(k - 1)
        return x - rate * (torch.einsum("ij,j->i", H, x) - b)

    return torch.stack([point(k) for k in range(steps + 1)])
