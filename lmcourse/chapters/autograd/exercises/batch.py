"""The exercise on a network of two layers, for the mean loss of a batch."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal

Grads = dict[str, Tensor]

_FIXED = Random(1)


def _batch(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    """Compute in float64, and round at the end."""
    wide1, wide2 = tracked(w1.double(), w2.double())
    y_hat = (x.double() @ wide1.T).sigmoid() @ wide2.T
    grads = grads_of(((y_hat - y.double()) ** 2).sum() / 2 / len(x), y_hat, wide1, wide2)
    return {name: grad.to(x.dtype) for name, grad in zip(("y_hat", "w1", "w2"), grads, strict=True)}


def _batches(name: str, random: Random, b: int, d: int, p: int, q: int, dtype: torch.dtype = torch.float64) -> Case:
    return case(name, *(normal(random, *shape, dtype=dtype) for shape in ((b, d), (p, d), (q, p), (b, q))))


def _hidden_batches(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _batches("other sizes", fixed, 6, 2, 4, 3),
        _batches("as many of each", fixed, 3, 3, 3, 3),
        _batches("a batch of one", fixed, 1, 1, 1, 1),
        _batches("single precision", fixed, 5, 4, 3, 2, dtype=torch.float32),
        _batches("other sizes", random, 7, 3, 5, 4),
        _batches("other sizes", random, 2, 5, 3, 2),
        _batches("a batch of one", random, 1, 4, 2, 3),
        _batches("one output", random, 4, 3, 2, 1),
    ]


backward_batch = Exercise(
    "backward_batch",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_batch,
    cases=[
        _batches("2 examples, 3 outputs", _FIXED, 2, 2, 3, 3),
        _batches("5 examples, 2 outputs", _FIXED, 5, 4, 3, 2),
        _batches("a batch of one", _FIXED, 1, 2, 2, 2),
    ],
    hidden_cases=_hidden_batches,
    hints=[
        "The 1/B belongs to the loss, so it is in the first gradient you compute, and all others inherit it.",
        "dy_hat = (y_hat − y) / B. After that, B does not appear again.",
        "With rows for examples: dw2 = dy_hat.T @ z, dz = dy_hat @ w2, dw1 = dh.T @ x. Each .T @ sums over the batch.",
    ],
    forbid=NO_AUTOGRAD,
)


@backward_batch.variant
def one_example_after_the_other(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> dict[str, Tensor]:
    rows, dw1, dw2 = [], 0 * w1, 0 * w2
    for number in range(len(x)):
        z = 1 / (1 + torch.exp(-(w1 @ x[number])))
        row = (w2 @ z - y[number]) / len(x)
        dw2 = dw2 + row[:, None] * z
        dw1 = dw1 + torch.outer(row @ w2 * z * (1 - z), x[number])
        rows.append(row)
    return {"w2": dw2, "w1": dw1, "y_hat": torch.stack(rows)}


@backward_batch.variant
def examples_as_columns(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> dict[str, Tensor]:
    z = torch.nn.functional.sigmoid(w1 @ x.T)
    delta = w2 @ z - y.T
    mean = 1 / x.shape[0]
    dw1 = (w2.T @ delta * (z - z**2)) @ x * mean
    return dict(zip(["y_hat", "w1", "w2"], [mean * delta.T, dw1, delta @ z.T * mean], strict=True))


@backward_batch.variant
def in_numpy(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> dict[str, Tensor]:
    data, first, second, target = (tensor.numpy().astype("float64") for tensor in (x, w1, w2, y))
    z = np.reciprocal(1 + np.exp(-data @ first.T))
    delta = (z @ second.T - target) / len(data)
    slope = delta @ second * z * (1 - z)
    grads = {"y_hat": delta, "w1": np.einsum("bp,bd->pd", slope, data), "w2": np.einsum("bq,bp->qp", delta, z)}
    return {name: torch.from_numpy(grad.astype(x.numpy().dtype)) for name, grad in grads.items()}


@backward_batch.misconception(
    "Your weight gradients are divided by B twice: once in dŷ, and once more in their own sum."
)
def one_over_b_twice(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    right = _batch(x, w1, w2, y)
    return right | {name: right[name] / len(x) for name in ("w1", "w2")}


@backward_batch.misconception(
    "Your weight gradients are right, but dŷ lacks the 1/B: it is the gradient of each example's own loss, not of the "
    "mean loss."
)
def only_the_weights_averaged(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    right = _batch(x, w1, w2, y)
    return right | {"y_hat": right["y_hat"] * len(x)}


@backward_batch.misconception("There is no 1/B anywhere: these are the gradients of the sum of the losses.")
def summed(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    return {name: grad * len(x) for name, grad in _batch(x, w1, w2, y).items()}


@backward_batch.misconception(
    "The gradient of W₂ is divided by B, but that of W₁ is not. Divide dŷ by B, and both are right."
)
def only_the_second_weight(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    right = _batch(x, w1, w2, y)
    return right | {"w1": right["w1"] * len(x)}


@backward_batch.misconception(
    "You divide by the number of *elements* of ŷ. The loss averages over examples and sums over outputs."
)
def mean_over_elements(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    return {name: grad / y.shape[1] for name, grad in _batch(x, w1, w2, y).items()}


@backward_batch.misconception(
    "Your dŷ is 2(ŷ − y)/(B·q), the gradient of F.mse_loss. Here the loss is ½‖ŷ − y‖², averaged over the B examples."
)
def as_mse_loss(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    return {name: grad * 2 / y.shape[1] for name, grad in _batch(x, w1, w2, y).items()}


@backward_batch.misconception("The loss has a factor ½, so dŷ is (ŷ − y)/B. All your gradients are twice as large.")
def twice(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    return {name: grad * 2 for name, grad in _batch(x, w1, w2, y).items()}


@backward_batch.misconception(
    'Your weight gradients are right, but "y_hat" is averaged over the batch. Each example has its own prediction: (B, '
    "q)."
)
def predictions_averaged(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    right = _batch(x, w1, w2, y)
    return right | {"y_hat": right["y_hat"].sum(0)}


@backward_batch.misconception("Your weight gradients contain only the last example: sum over the batch.")
def last_example(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    last = _batch(x[-1:], w1, w2, y[-1:])
    return {name: grad / len(x) for name, grad in last.items()} | {"y_hat": _batch(x, w1, w2, y)["y_hat"]}


@backward_batch.misconception('"y_hat" holds the prediction. The exercise asks for its gradient, (ŷ − y)/B.')
def prediction_for_gradient(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    right = _batch(x, w1, w2, y)
    return right | {"y_hat": right["y_hat"] * len(x) + y}


@backward_batch.misconception(
    "You divide by the number of features, x.shape[1]. B is the number of examples, x.shape[0]."
)
def over_the_features(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    return {name: grad * len(x) / x.shape[1] for name, grad in _batch(x, w1, w2, y).items()}


@backward_batch.misconception(
    "Your weight gradients multiply sums over the batch. Multiply within each example, then sum over the examples."
)
def product_of_sums(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> Grads:
    dy_hat, z = _batch(x, w1, w2, y)["y_hat"], (x @ w1.T).sigmoid()
    dh = dy_hat @ w2 * z * (1 - z)
    return {"y_hat": dy_hat, "w1": dh.sum(0).outer(x.mean(0)), "w2": dy_hat.sum(0).outer(z.mean(0))}
