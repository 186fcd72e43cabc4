"""The exercise on the gradient of a linear classifier with softmax."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import integers, normal


def _by_autograd(W: Tensor, X: Tensor, y: Tensor) -> Tensor:
    weights = W.detach().double().requires_grad_()
    loss = torch.nn.functional.cross_entropy(X.double() @ weights.T, y)
    (gradient,) = torch.autograd.grad(loss, weights)
    return gradient.to(W.dtype)


def _labels(*labels: int) -> Tensor:
    return torch.tensor(labels)


def _hidden(random: Random) -> list[Case]:
    X, W = normal(Random(7), 5, 3), normal(Random(8), 4, 3)
    cases = [
        case(
            "scores of a thousand",
            1000 * torch.eye(2),
            torch.tensor([[1.0, -1.0], [1.0, 0.0], [-1.0, 1.0]]),
            _labels(1, 0, 0),
        ),
        case("all scores far above zero", torch.tensor([[300.0], [299.0], [200.0]]), torch.tensor([[1.0]]), _labels(1)),
        case(
            "scores of a thousand",
            torch.tensor([[1000.0], [999.0], [980.0]], dtype=torch.float64),
            torch.tensor([[1.0]], dtype=torch.float64),
            _labels(0),
        ),
        case("all scores far below zero", torch.full((2, 1), -500.0), torch.tensor([[1.0], [0.5]]), _labels(0, 1)),
        case("one example", W, X[:1], _labels(2)),
        case("a class that never occurs", W, X, _labels(0, 1, 1, 0, 3)),
        case("as many classes as examples", W, X[:4], _labels(3, 2, 1, 0)),
        case("as many features as examples", W, X[:3], _labels(3, 3, 1)),
        case("double precision", W.double(), X.double(), _labels(0, 1, 2, 3, 0)),
        case("the same example twice", W, X[[0, 0]], _labels(1, 1)),
        case("one class alone", W[:1], X, _labels(0, 0, 0, 0, 0)),
    ]
    for n, c, d in ((3, 2, 4), (6, 5, 2), (4, 3, 3)):
        y = torch.tensor([random.randrange(c) for _ in range(n)])
        cases.append(case("other shapes", normal(random, c, d), normal(random, n, d), y))
    cases.append(case("whole numbers", integers(random, 3, 2), integers(random, 4, 2), _labels(0, 1, 2, 1)))
    return cases


softmax_gradient = Exercise(
    "softmax_gradient",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_autograd,
    cases=[
        case("scores of 0, two classes", torch.zeros(2, 2), torch.tensor([[1.0, 2.0]]), _labels(0)),
        case("three classes, two examples", torch.zeros(3, 2), torch.tensor([[3.0, 0.0], [0.0, 6.0]]), _labels(0, 2)),
        case(
            "scores that differ",
            torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
            torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [1.0, 1.0, -1.0]]),
            _labels(1, 1, 0),
        ),
        case("large scores", torch.tensor([[1000.0], [-500.0]]), torch.tensor([[1.0], [-1.0]]), _labels(1, 1)),
    ],
    hidden_cases=_hidden,
    hints=[
        "The scores are X @ W.T, a row for each example. The softmax runs along the row: dim=1.",
        "How does −log p of the right class change with a score? Take p for every class, and subtract 1 for the right "
        "one: p[torch.arange(n), y] -= 1.",
        "A score is a row of W times x, so the gradient of each row of W is its error times x: (p − one-hot).T @ X, "
        "divided by the number of examples.",
    ],
    forbid=[*NO_AUTOGRAD, ".grad"],
)


@softmax_gradient.variant
def error_by_error(W: Tensor, X: Tensor, y: Tensor) -> Tensor:
    p = (X @ W.T).softmax(dim=1)
    p[torch.arange(len(y)), y] -= 1
    return p.T @ X / len(X)


softmax_gradient.slips(
    error_by_error,
    {
        " / len(X) → ": "You add up the examples. The loss is their mean.",
        "return p.T → return -p.T": "Your sign is reversed: a step against it would lower the right class.",
        "p.T @ X → X.T @ p": "You swapped rows and columns: the gradient has the shape of W.",
        "p[torch.arange(len(y)), y] -= 1 → p = torch.nn.functional.one_hot(y, len(W)) * (p - 1)": "You push only the "
        "right class. The other classes are pushed down, each by its probability.",
        "p[torch.arange(len(y)), y] -= 1 → p = p - torch.nn.functional.one_hot(y)": "`one_hot(y)` has as many columns "
        "as the largest number in y needs. There may be more classes: one_hot(y, len(W)).",
        "y] -= 1 → y] = 1 - p[torch.arange(len(y)), y]": "For the right class you take 1 − p. The derivative of −log "
        "p is p − 1 there.",
        "-= 1 → -= 0": "The targets are missing: it is p − 1 for the right class.",
        "dim=1 → dim=0": "Your softmax runs over the examples. It should run over the classes of one example.",
        "torch.arange(len(y)), y → :, y": "In every row you subtract 1 at the right classes of *all* examples. Index "
        "rows and classes together.",
        "(X @ W.T).softmax(dim=1) → (X @ W.T).exp() / (X @ W.T).exp().sum(dim=1, keepdim=True)": "The exponential of a "
        "large score overflows. Subtract the largest score of each row first.",
        "len(X) → len(X) / len(W)": "You divide by the number of classes as well. The mean is taken over examples "
        "alone.",
        ".softmax(dim=1) → ": "That is the gradient of a squared error: score − one-hot, without a softmax.",
    },
)


@softmax_gradient.variant
def example_by_example(W: Tensor, X: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros_like(W)
    for x, label in zip(X, y.tolist(), strict=True):
        scores = W @ x
        weights = torch.exp(scores - scores.max())
        p = weights / weights.sum()
        for k in range(len(W)):
            total[k] += (p[k] - (1.0 if k == label else 0.0)) * x
    return total / len(X)


@softmax_gradient.variant
def with_einsum(W: Tensor, X: Tensor, y: Tensor) -> Tensor:
    log_p = torch.log_softmax(torch.einsum("nd,cd->nc", X, W), dim=-1)
    error = log_p.exp() - torch.nn.functional.one_hot(y, num_classes=W.size(0))
    return torch.einsum("nc,nd->cd", error.to(W.dtype), X) / X.size(0)
