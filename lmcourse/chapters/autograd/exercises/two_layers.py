"""The exercise on a network of two layers, for one example."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal


def _single(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> list[Tensor]:
    """Compute in float64, and round at the end."""
    wide1, wide2 = tracked(w1.double(), w2.double())
    loss = ((wide2 @ (wide1 @ x.double()).sigmoid() - y.double()) ** 2).sum() / 2
    return [grad.to(x.dtype) for grad in grads_of(loss, wide1, wide2)]


def _example(name: str, random: Random, d: int, p: int, q: int, dtype: torch.dtype = torch.float64) -> Case:
    return case(name, *(normal(random, *shape, dtype=dtype) for shape in ((d,), (p, d), (q, p), (q,))))


def _saturated(dtype: torch.dtype = torch.float64) -> Case:
    """A case whose hidden numbers are 1000, -1000 and 0, computed without rounding."""
    sizes = [1.0, 2.0], [[1000.0, 0.0], [0.0, -500.0], [4.0, -2.0]], [[2.0, 3.0, -1.0]], [1.0]
    return case("hidden numbers of ±1000", *(torch.tensor(size, dtype=dtype) for size in sizes))


def _examples(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _example("other sizes", fixed, 5, 2, 3),
        _example("other sizes", fixed, 1, 1, 1),
        _example("one hidden unit", fixed, 3, 1, 2),
        _example("single precision", fixed, 4, 3, 2, dtype=torch.float32),
        _saturated(torch.float32),
        _example("other sizes", random, 2, 6, 4),
        _example("square weights", random, 3, 3, 3),
        _example("one output", random, 4, 5, 1),
        _example("one input", random, 1, 4, 3),
    ]


_FIXED = Random(1)

backward_two_layer = Exercise(
    "backward_two_layer",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_single,
    cases=[
        _example("2 inputs, 3 hidden units, 1 output", _FIXED, 2, 3, 1),
        _example("4 inputs, 3 hidden units, 2 outputs", _FIXED, 4, 3, 2),
        _example("square weights", _FIXED, 3, 3, 3),
        _saturated(),
    ],
    hidden_cases=_examples,
    hints=[
        "Run forward first and keep h, z and ŷ. Then go backwards, one line per node: dy_hat, dw2, dz, dh, dw1.",
        "σ'(h) = z(1 − z), because z = σ(h) is known already.",
        "A weight's gradient is an outer product, torch.outer(gradient of the output, input): dw2 = outer(dy_hat, z).",
    ],
    forbid=NO_AUTOGRAD,
)


@backward_two_layer.variant
def loops_over_numbers(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> list[Tensor]:
    d, p, q = len(x), len(w1), len(w2)
    h = [sum(float(w1[j, i]) * float(x[i]) for i in range(d)) for j in range(p)]
    z = [(1 + math.tanh(number / 2)) / 2 for number in h]
    error = [sum(float(w2[k, j]) * z[j] for j in range(p)) - float(y[k]) for k in range(q)]
    dw2 = [[error[k] * z[j] for j in range(p)] for k in range(q)]
    dh = [sum(error[k] * float(w2[k, j]) for k in range(q)) * z[j] * (1 - z[j]) for j in range(p)]
    dw1 = [[dh[j] * float(x[i]) for i in range(d)] for j in range(p)]
    return [torch.tensor(dw1, dtype=x.dtype), torch.tensor(dw2, dtype=x.dtype)]


@backward_two_layer.variant
def columns_as_matrices(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    h = torch.nn.functional.linear(x[None], w1)
    z = torch.nn.functional.sigmoid(h)
    delta = torch.sub(torch.mm(z, w2.T), y)
    return ((delta @ w2) * z * torch.nn.functional.sigmoid(-h)).T @ x[None], delta.T @ z


@backward_two_layer.variant
def einsum_and_tanh(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> list[Tensor]:
    t = torch.tanh(torch.einsum("pd,d->p", w1, x) / 2)
    error = torch.einsum("qp,p->q", w2, 0.5 + t / 2) - y
    dw1 = torch.einsum("q,qp,p,d->pd", error, w2, (1 - t * t) / 4, x)
    return [dw1, torch.einsum("q,p->qp", error, (1 + t) / 2)]


@backward_two_layer.variant
def node_after_node(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> list[Tensor]:
    h = w1 @ x
    z = h.sigmoid()
    y_hat = w2 @ z
    dy_hat = y_hat - y
    dw2 = dy_hat.outer(z)
    dz = w2.T @ dy_hat
    dh = dz * z * (1 - z)
    dw1 = dh.outer(x)
    return [dw1, dw2]


backward_two_layer.slips(
    node_after_node,
    {
        " * z * (1 - z) → ": "σ' is missing: between h and z is a sigmoid, and the backward pass goes through it, too.",
        "z * (1 - z) → z.sigmoid() * (1 - z.sigmoid())": "You take σ' at z. Its argument is h. Since z is σ(h) "
        "already, σ' is z(1 − z).",
        "z * (1 - z) → h * (1 - h)": "σ' is z(1 − z) with z = σ(h). You wrote h(1 − h).",
        "y_hat - y → 2 * (y_hat - y)": "The loss is *half* the squared distance, so dŷ is ŷ − y, without the factor 2.",
        "y_hat - y → y - y_hat": "Every sign is wrong: the derivative of ½(ŷ − y)² is ŷ − y, not y − ŷ.",
        "w2.T → w2": "The gradient of z needs W₂ᵀ: z[p] reaches every output through column p of W₂.",
        "h.sigmoid() → h.exp() / (1 + h.exp())": "Your sigmoid is eʰ/(1 + eʰ): at h = 1000 that is ∞/∞, NaN. 1/(1 + "
        "e⁻ʰ) is right at both ends, and so is torch.sigmoid.",
        "z * (1 - z) → (-h).exp() / (1 + (-h).exp()) ** 2": "Your σ' is e⁻ʰ/(1 + e⁻ʰ)²: at h = −1000 that is ∞/∞, NaN. "
        "Write it with the result of the forward pass: z(1 − z).",
        "dy_hat.outer(z) → dy_hat.outer(h)": "W₂ multiplied z, not h: its gradient is the outer product of dŷ with z.",
        "[dw1, dw2] → [w1 - dw1, w2 - dw2]": "These are weights after a step of training, w − dw. Return the "
        "gradients, dw1 and dw2.",
        "dy_hat.outer(z) → z.outer(dy_hat) ;; dh.outer(x) → x.outer(dh)": "Both gradients are transposed. W₁ is (p, "
        "d): the outer product starts with the gradient that arrives.",
        "z * (1 - z) → (1 - z**2)": "1 − z² is the derivative of tanh. That of the sigmoid is z(1 − z).",
        "y_hat - y → (y_hat - y) ** 2 / 2": "You go backward with the loss itself, ½(ŷ − y)². The first gradient is "
        "its derivative, ŷ − y.",
        "dy_hat.outer(z) → z.outer(dy_hat)": "dw2 is transposed. W₂ is (q, p): dŷ comes first in the outer product, "
        "then z.",
        "w2.T @ dy_hat → dy_hat.sum()": "On the way from ŷ to z the factor W₂ is missing: dz = W₂ᵀ dŷ, not the sum of "
        "dŷ.",
        "w2.T @ dy_hat → (w2 - dw2).T @ dy_hat": "You change W₂ before its old value has been used: dz needs the "
        "weights of the forward pass.",
        " * (1 - z) → ": "Your σ' is z alone. The derivative of the sigmoid is z(1 − z).",
        "[dw1, dw2] → [dw2, dw1]": "You return [dw2, dw1]. Return [dw1, dw2].",
        "y_hat - y → (y_hat - y) / len(y)": "You divide by the number of outputs. The loss is a sum over the outputs, "
        "not their mean.",
    },
)
