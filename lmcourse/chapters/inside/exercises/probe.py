"""The exercise on a linear probe."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _probe(x: Tensor, labels: Tensor, classes: int, ridge: float = 0.1) -> Any:
    """Solve an ordinary least-squares problem with one more row, √ridge, for each column."""
    centre, eye = x.mean(dim=0), torch.eye(classes, dtype=x.dtype)

    def columns(points: Tensor) -> Tensor:
        return F.pad(points - centre, (0, 1), value=1.0)

    a = columns(x)
    penalty = ridge**0.5 * torch.eye(a.shape[1], dtype=x.dtype)
    target = torch.cat([eye[labels], torch.zeros(len(penalty), classes, dtype=x.dtype)])
    weights = torch.linalg.lstsq(torch.cat([a, penalty]), target, driver="gelsd").solution
    return lambda points: torch.max(columns(points) @ weights, dim=1).indices


def _case(
    name: str,
    random: Random,
    *,
    n: int = 12,
    new: int = 9,
    d: int = 2,
    classes: int = 3,
    centre: float = 0.0,
    weights: tuple[int, ...] = (1, 1, 1),
    ridge: float | None = None,
    spread: float = 2.0,
) -> Case:
    """Return a case: points around the corners of a simplex, of which some classes have more than others."""
    corners = normal64(random, classes, d, scale=1.5)
    labels = torch.tensor([*range(classes), *random.choices(range(classes), weights, k=n - classes)])
    x = corners[labels] + normal64(random, n, d) + centre
    points = normal64(random, new, d, scale=spread) + centre
    given = "" if ridge is None else f", ridge={ridge:g}"
    lines = f"named = probe(x, labels, {classes}{given})\nnamed(points)"
    return script(name, lines, x=x, labels=labels, points=points)


def _far_apart() -> Case:
    """Labels in the order 0, 2, 1 on a line: a fit of the numbers 0, 1, 2 cannot name them."""
    x = torch.tensor([[-4.0, 1], [-3, 0], [0, 1], [0, -1], [3, 0], [4, 1]], dtype=torch.float64)
    points = torch.tensor([[-3.5, 0.5], [0.2, 0], [3.5, 0], [2, 2], [-2, 3]], dtype=torch.float64)
    lines = "named = probe(x, labels, 3)\nnamed(points)"
    return script("three classes in a row", lines, x=x, labels=torch.tensor([0, 0, 2, 2, 1, 1]), points=points)


def _hidden(random: Random) -> list[Case]:
    return [
        _case("other points", random, n=20, new=20, d=3),
        _case("other points", random, n=20, new=20, d=2, classes=4, weights=(1, 1, 1, 1)),
        _case("far from zero", random, new=20, centre=-30.0),
        _case("new points far from the others", random, new=20, spread=20.0),
        _case("a strong ridge", Random(293), n=15, ridge=8.0, centre=3.0, weights=(1, 2, 5)),
        _case("a rare class", random, n=20, new=20, weights=(12, 1, 4)),
        _case("more features than points", random, n=6, new=20, d=9),
        _case("one new point", random, new=1, centre=3.0),
    ]


probe = Exercise(
    "probe",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_probe,
    cases=[
        _far_apart(),
        _case("three classes in a plane", Random(1)),
        _case("far from zero", Random(2), centre=40.0),
        _case("new points far from the others", Random(7), spread=15.0),
        _case("a strong ridge", Random(299), ridge=30.0, centre=4.0, weights=(1, 1, 4)),
        _case("a rare class", Random(4), n=16, weights=(10, 1, 5)),
        _case("more features than points", Random(5), n=5, d=6, new=4),
        _case("six points in four dimensions", Random(1), n=6, d=4),
        _case("one new point", Random(6), new=1, centre=5.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Compute the mean of x once. The same mean is subtracted from new points. Then append a column of ones.",
        "With A = [x − mean, 1], (n, d + 1), and Y = one_hot(labels, classes), (n, classes), solve "
        "(AᵀA + ridge · I) W = AᵀY.",
        "W = torch.linalg.solve(A.T @ A + ridge * torch.eye(d + 1), A.T @ Y). The function that you return builds A "
        "for its own points, and takes (A @ W).argmax(dim=1).",
    ],
)


@probe.variant
def normal_equations(x: Tensor, labels: Tensor, classes: int, ridge: float = 0.1) -> Any:
    centre = x.mean(dim=0)

    def columns(points: Tensor) -> Tensor:
        ones = torch.ones(len(points), 1, dtype=x.dtype)
        return torch.cat([points - centre, ones], dim=1)

    a = columns(x)
    y = F.one_hot(labels, classes).to(x.dtype)
    left = a.T @ a + ridge * torch.eye(a.shape[1], dtype=x.dtype)
    weights = torch.linalg.solve(left, a.T @ y)

    def name(points: Tensor) -> Tensor:
        return (columns(points) @ weights).argmax(dim=1)

    return name


probe.equivalent_mutant(
    "return F.pad(vectors - mean, (0, 1), value=1.0) → return F.pad(mean - vectors, (0, 1), value=1.0)",
    "All features change their sign, and so do their weights.",
)
probe.slips(
    normal_equations,
    {
        "points - centre → points - points.mean(dim=0)": "You centre new points with their own mean. They are seen "
        "from where the probe was fitted: subtract the mean of `x`.",
        "points - centre → points": "You do not centre: the ridge then holds back the constant, which must make up for "
        "the mean.",
        "return (columns(points) @ weights) → return (columns(points + centre) @ weights)": "You centre `x`, but not "
        "the new points. Subtract the mean of `x` from them, too.",
        "points - centre → (points - centre) / x.std(dim=0)": "You divide by the spread of `x`. Only its mean is "
        "subtracted.",
        "ridge * torch.eye(a.shape[1], dtype=x.dtype) → ridge * torch.tensor([1.0] * x.shape[1] + [0.0], "
        "dtype=x.dtype).diag()": "You leave the constant out of the ridge. Here the ridge is on all rows of W.",
        "torch.cat([points - centre, ones], dim=1) → points - centre ;; ones = torch.ones(len(points), 1, "
        "dtype=x.dtype)\n → pass\n": "The column of ones is missing. Without a constant, a common class has no head "
        "start.",
        "a.T @ a + ridge * torch.eye(a.shape[1], dtype=x.dtype) → a.T @ a + 0.1 * torch.eye(a.shape[1], "
        "dtype=x.dtype)": "Your ridge is always 0.1. It is an argument.",
        "a.T @ a + ridge * torch.eye(a.shape[1], dtype=x.dtype) → a.T @ a + ridge**2 * torch.eye(a.shape[1], "
        "dtype=x.dtype)": "You square the ridge. It is added to AᵀA as it is.",
        "a.T @ a + ridge * torch.eye(a.shape[1], dtype=x.dtype) → a.T @ a + ridge * len(x) * torch.eye(a.shape[1], "
        "dtype=x.dtype)": "You multiply the ridge by the number of points. It is added to AᵀA as it is.",
        "a.T @ a + ridge * torch.eye(a.shape[1], dtype=x.dtype) → a.T @ a + ridge": "You add the ridge to every number "
        "of AᵀA. It belongs on the diagonal.",
        "y = F.one_hot(labels, classes).to(x.dtype) → y = labels[:, None].to(x.dtype) ;; (columns(points) @ "
        "weights).argmax(dim=1) → (columns(points) @ weights)[:, 0].round().long().clamp(0, classes - 1)": "You fit "
        "the numbers of the classes. Class 2 is not twice class 1: fit a column of 0 and 1 for each class.",
        "(columns(points) @ weights).argmax(dim=1) → (columns(points) @ weights).argmin(dim=1)": "You name the class "
        "with the smallest number.",
        "(columns(points) @ weights).argmax(dim=1) → (columns(points) @ weights).abs().argmax(dim=1)": "You take the "
        "largest absolute value. A large negative number speaks against a class.",
        "(columns(points) @ weights).argmax(dim=1) → columns(points) @ weights": "Your function returns the numbers of "
        "all classes. It returns the class with the largest one.",
        "    return name →     return name(x)": "You return the classes of the points that were fitted. Return a "
        "function, which names the classes of new points.",
        "return (columns(points) @ weights).argmax(dim=1) → return (a @ weights).argmax(dim=1)[: len(points)]": "Your "
        "function names the points that were fitted, whatever it is given. It gets new points.",
        "    weights = torch.linalg.solve(left, a.T @ y) →     means = torch.stack([x[labels == one].mean(dim=0) for "
        "one in range(classes)]) ;; return (columns(points) @ weights).argmax(dim=1) → return torch.cdist(points, "
        "means).argmin(dim=1)": "You name the class whose mean is nearest. Asked is a least-squares fit of 0 and 1.",
    },
)
