"""The exercise on a network of two layers, for the mean loss of a batch."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, script
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


def _batches(
    name: str, random: Random, b: int, d: int, p: int, q: int, dtype: torch.dtype = torch.float64
) -> list[Case]:
    """A case for each gradient, so that one mistake does not cost the points of all."""
    tensors = [normal(random, *shape, dtype=dtype) for shape in ((b, d), (p, d), (q, p), (b, q))]
    inputs = dict(zip(("x", "w1", "w2", "y"), tensors, strict=True))
    names = ("y_hat", "w1", "w2")
    return [script(f"{each}: {name}", f'backward_batch(x, w1, w2, y)["{each}"]', **inputs) for each in names]


def _saturated() -> list[Case]:
    """Cases whose hidden numbers are 1000, -1000 and 0, computed without rounding."""
    sizes = [[1.0, 2.0]], [[1000.0, 0.0], [0.0, -500.0], [4.0, -2.0]], [[2.0, 3.0, -1.0]], [[1.0]]
    x, w1, w2, y = (torch.tensor(each, dtype=torch.float64) for each in sizes)
    call = 'backward_batch(x, w1, w2, y)["{}"]'
    return [script(f"{n}: ±1000 hidden", call.format(n), x=x, w1=w1, w2=w2, y=y) for n in ("w1", "w2")]


def _hidden_batches(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        *_batches("other inputs", fixed, 6, 2, 4, 3),
        *_batches("other inputs", fixed, 3, 3, 3, 3),
        *_batches("other inputs", fixed, 1, 1, 1, 1),
        *_batches("other inputs", fixed, 5, 4, 3, 2, dtype=torch.float32),
        *_batches("other inputs", random, 7, 3, 5, 4),
        *_batches("other inputs", random, 2, 5, 3, 2),
        *_batches("other inputs", random, 1, 4, 2, 3),
        *_batches("other inputs", random, 4, 3, 2, 1),
    ]


backward_batch = Exercise(
    "backward_batch",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_batch,
    cases=[
        *_batches("2 examples, 3 outputs", _FIXED, 2, 2, 3, 3),
        *_batches("5 examples, 2 outputs", _FIXED, 5, 4, 3, 2),
        *_batches("a batch of one", _FIXED, 1, 2, 2, 2),
        *_saturated(),
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
def node_after_node(x: Tensor, w1: Tensor, w2: Tensor, y: Tensor) -> dict[str, Tensor]:
    h = x @ w1.T
    z = h.sigmoid()
    y_hat = z @ w2.T
    dy_hat = (y_hat - y) / len(x)
    dw2 = dy_hat.T @ z
    dh = dy_hat @ w2 * z * (1 - z)
    dw1 = dh.T @ x
    return {"y_hat": dy_hat, "w1": dw1, "w2": dw2}


backward_batch.slips(
    node_after_node,
    {
        "dy_hat.T @ z → dy_hat.T @ z / len(x) ;; dh.T @ x → dh.T @ x / len(x)": "Your weight gradients are divided by "
        "B twice: once in dŷ, and once more in their own sum.",
        '"y_hat": dy_hat → "y_hat": y_hat - y': "Your weight gradients are right, but dŷ lacks the 1/B: it is the "
        "gradient of each example's own loss, not of the mean loss.",
        " / len(x) → ": "There is no 1/B anywhere: these are the gradients of the sum of the losses.",
        "dh = dy_hat → dh = (y_hat - y)": "The gradient of W₂ is divided by B, but that of W₁ is not. Divide dŷ by B, "
        "and both are right.",
        "len(x) → y.numel()": "You divide by the number of *elements* of ŷ. The loss averages over examples and sums "
        "over outputs.",
        "(y_hat - y) / len(x) → 2 * (y_hat - y) / y.numel()": "Your dŷ is 2(ŷ − y)/(B·q), the gradient of F.mse_loss. "
        "Here the loss is ½‖ŷ − y‖², averaged over the B examples.",
        "(y_hat - y) → 2 * (y_hat - y)": "The loss has a factor ½, so dŷ is (ŷ − y)/B. All your gradients are twice as "
        "large.",
        '"y_hat": dy_hat → "y_hat": dy_hat.sum(0)': 'Your weight gradients are right, but "y_hat" is averaged over the '
        "batch. Each example has its own prediction: (B, q).",
        "dy_hat.T @ z → dy_hat[-1].outer(z[-1]) ;; dh.T @ x → dh[-1].outer(x[-1])": "Your weight gradients contain "
        "only the last example: sum over the batch.",
        '"y_hat": dy_hat → "y_hat": y_hat': '"y_hat" holds the prediction. The exercise asks for its gradient, (ŷ − '
        "y)/B.",
        "dy_hat.T @ z → (dy_hat.T @ z).T ;; dh.T @ x → (dh.T @ x).T": "Both weight gradients are transposed. W₁ is (p, "
        "d): the gradient that arrives comes first in the product.",
        "dy_hat.T @ z → (dy_hat.T @ z).T": '"w2" is transposed. W₂ is (q, p): dŷ comes first in the product, then z.',
        " * z * (1 - z) → ": "σ' is missing: between h and z is a sigmoid, and the backward pass goes through it, too.",
        "z * (1 - z) → z.sigmoid() * (1 - z.sigmoid())": "You take σ' at z. Its argument is h. Since z is σ(h) "
        "already, σ' is z(1 − z).",
        " * (1 - z) → ": "Your σ' is z alone. The derivative of the sigmoid is z(1 − z).",
        "* z * (1 - z) → * (1 - z**2)": "1 − z² is the derivative of tanh. That of the sigmoid is z(1 − z).",
        "(y_hat - y) → (y - y_hat)": "Every sign is wrong: the derivative of ½(ŷ − y)² is ŷ − y, not y − ŷ.",
        '{"y_hat": dy_hat, "w1": dw1, "w2": dw2} → dy_hat, dw1, dw2': "You return the gradients without their names. "
        "Return a dict with the names of the exercise.",
        "h.sigmoid() → h.exp() / (1 + h.exp())": "Your sigmoid is eʰ/(1 + eʰ): at h = 1000 that is ∞/∞, NaN. "
        "1/(1 + e⁻ʰ) is right at both ends, and so is torch.sigmoid.",
        "z * (1 - z) → (-h).exp() / (1 + (-h).exp()) ** 2": "Your σ' is e⁻ʰ/(1 + e⁻ʰ)²: at h = −1000 that is ∞/∞, NaN. "
        "Write it with the result of the forward pass: z(1 − z).",
        "z * (1 - z) → h * (1 - h)": "σ' is z(1 − z) with z = σ(h). You wrote h(1 − h).",
        "dy_hat.T @ z → dy_hat.T @ h": "W₂ multiplied z, not h: its gradient is dŷᵀ z.",
        "len(x) → x.shape[1]": "You divide by the number of features, x.shape[1]. B is the number of examples, "
        "x.shape[0].",
        "dy_hat.T @ z → dy_hat.sum(0).outer(z.mean(0)) ;; dh.T @ x → dh.sum(0).outer(x.mean(0))": "Your weight "
        "gradients multiply sums over the batch. Multiply within each example, then sum over the examples.",
    },
)
