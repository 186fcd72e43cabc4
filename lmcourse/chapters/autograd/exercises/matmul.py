"""Exercises on the backward pass of a matrix product, and on its cost."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.chapters.autograd.exercises.inputs import grads_of, tracked
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise, value_exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal

# backward_matmul -------------------------------------------------------------------------------------------------


def _by_torch(x: Tensor, w: Tensor, dy: Tensor) -> list[Tensor]:
    """Compute in float64, and round at the end."""
    wide_x, wide_w = tracked(x.double(), w.double())
    return [grad.to(x.dtype) for grad in torch.autograd.grad(wide_x @ wide_w, (wide_x, wide_w), dy.double())]


def _ask(name: str, random: Random, *batch: int, d: int, k: int, dtype: torch.dtype = torch.float64) -> Case:
    shapes = (*batch, d), (d, k), (*batch, k)
    return case(name, *(normal(random, *shape, dtype=dtype) for shape in shapes))


def _shapes(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("no batch at all", fixed, d=3, k=5),
        _ask("no batch at all", fixed, d=4, k=1),
        _ask("square weights", fixed, 4, d=4, k=4),
        _ask("one of one", fixed, 1, d=1, k=1),
        _ask("more axes in front", fixed, 3, 1, 2, 2, d=5, k=3),
        case("axes that changed places", *(normal(Random(8), *shape).mT for shape in ((2, 3, 4), (5, 3), (2, 5, 4)))),
        _ask("single precision", fixed, 3, d=5, k=2, dtype=torch.float32),
        _ask("other shapes", random, 4, d=6, k=3),
        _ask("other shapes", random, 7, d=2, k=3),
        _ask("square weights", random, 3, d=4, k=4),
        _ask("more axes in front", random, 2, 3, d=5, k=2),
        _ask("more axes in front", random, 2, 1, 3, d=2, k=5),
    ]


_FIXED = Random(0)

backward_matmul = Exercise(
    "backward_matmul",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_torch,
    cases=[
        case(
            "one example",
            torch.tensor([[1.0, 2.0]]),
            torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
            torch.tensor([[1.0, 10.0, 100.0]]),
        ),
        _ask("B = 3, D = 5, K = 2", _FIXED, 3, d=5, k=2),
        _ask("more examples than features", _FIXED, 7, d=5, k=2),
        _ask("a square weight", _FIXED, 2, d=3, k=3),
        _ask("a batch of texts: (2, 3, 4) @ (4, 5)", _FIXED, 2, 3, d=4, k=5),
        _ask("four axes: (2, 3, 2, 4) @ (4, 5)", _FIXED, 2, 3, 2, d=4, k=5),
        _ask("one axis: (3) @ (3, 2)", _FIXED, d=3, k=2),
    ],
    hidden_cases=_shapes,
    hints=[
        "Let the shapes guide you: dx has the shape of x, dw that of w, and dy is a factor of both.",
        "y[b, k] = Σ_d x[b, d] w[d, k]. So dx[b, d] sums dy[b, k] w[d, k] over k, and dw[d, k] sums x[b, d] dy[b, k] "
        "over b.",
        'einsum(x, dy, "... d, ... k -> d k") sums over all leading axes.',
    ],
    forbid=NO_AUTOGRAD,
)


@backward_matmul.variant
def two_products(x: Tensor, w: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    D, K = w.shape
    dx = dy @ w.T
    dw = x.reshape(-1, D).T @ dy.reshape(-1, K)
    return dx, dw


backward_matmul.slips(
    two_products,
    {
        "dw = x.reshape(-1, D).T @ dy.reshape(-1, K) → dw, x, dy = torch.zeros_like(w), x.reshape(-1, D), "
        "dy.reshape(-1, K)\n    for b in range(len(x)):\n        for k in range(K): dw[b, "
        "k] += dy[b].sum() * x[b, k]": "You write to w.grad[b, d], but a weight has no axis for the batch: it is "
        "w.grad[d, k].",
        "return dx, dw → dw[K:] = 0\n    return dx, dw": "Your loop over d stops at w.shape[1] instead of w.shape[0], "
        "so the last rows of dw stay 0.",
        "return dx, dw → return dx, dw / dy.reshape(-1, K).shape[0]": "You average dw over the examples. All examples "
        "use the same weight, so its gradients add up. If the loss is a mean, dy already contains it.",
        "dw = x.reshape(-1, D) → dw = x.reshape(-1, D)[-1:] ;; dy.reshape(-1, K) → dy.reshape(-1, K)[-1:]": "dw holds "
        "the last example only: in a loop over the batch, add to it instead of overwriting it.",
        "dy @ w.T → dy @ w.T / len(x)": "You divide dx by the size of its first axis. Each example has its own row of "
        "dx; if the loss is a mean, dy already contains that.",
        "return dx, dw → return dx, dw.T": "Your dw is transposed. It needs the shape of w, (D, K).",
        "x.reshape(-1, D).T → x.reshape(D, -1)": "You reshape x where you should transpose it. `reshape` keeps the "
        "order of the numbers, so it mixes examples and features.",
        "dy @ w.T → dy @ w": "dx needs w transposed: dy has K columns, and dx needs D.",
        "dy @ w.T → torch.ones_like(dy) @ w.T ;; @ dy.reshape(-1, K) → @ torch.ones_like(dy).reshape(-1, K)": "You "
        "leave out dy, so the loss would be the sum of y. By the chain rule dy is a factor of both gradients.",
        "dy @ w.T → torch.ones_like(dy) @ w.T": "Your dx leaves out dy, the gradient that arrives. By the chain rule "
        "it is a factor of dx, too.",
        "@ dy.reshape(-1, K) → @ torch.ones_like(dy).reshape(-1, K)": "Your dw leaves out dy, the gradient that "
        "arrives. By the chain rule it is a factor of dw, too.",
        "dy @ w.T → dy @ torch.linalg.pinv(w)": "You divide dy by w, as if you solved y = x @ w for x. A derivative "
        "multiplies: each x[d] moves y by its row of w.",
        "return dx, dw → return dw, dx": "You return [dw, dx]. Return [dx, dw].",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → x[..., :, None] * dy[..., None, :]": "Your dw still has an axis for "
        "the batch: one gradient per example. The weight is shared, so sum over the examples.",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → x.mT @ dy": "You multiply x transposed by dy in each text, so that "
        "dw keeps an axis for the texts. All texts use the same w: sum over every axis in front.",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → x.T @ dy": "`x` may have several axes in front, or none: dw is one "
        "(d, k) for all of them. Sum over them; `.T` is for two axes.",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → torch.einsum('bd,bk->dk', x, dy)": "You name one axis in front of "
        "the features. `x` may have several, or none: sum over all of them.",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → x.transpose(-1, -2) @ dy": "You multiply x transposed by dy in each "
        "text, so that dw keeps an axis for the texts. All texts use the same w: sum over every axis in front.",
        "x.reshape(-1, D).T @ dy.reshape(-1, K) → (x.mT @ dy).reshape(-1, D, K).sum(0)": "A tensor with one axis has "
        "no transpose: `.mT` needs two. For x of shape (d), dw is the outer product of x and dy.",
        "x.reshape(-1, D).T → x.permute(*range(x.ndim)[::-1]).reshape(D, -1)": "You reverse all axes of x, so its rows "
        "no longer have the order of the rows of dy. Flatten the axes in front first, then transpose.",
        "dw = x → dw = (x.mT @ dy).sum(0) if x.ndim > 2 else x": "You sum dw over the first axis only. x may have more "
        "axes in front of the features: sum over all of them.",
    },
)


@backward_matmul.variant
def loops(x: Tensor, w: Tensor, dy: Tensor) -> list[Tensor]:
    dx, dw = torch.zeros(x.shape, dtype=x.dtype), torch.zeros_like(w)
    rows = zip(dx.view(-1, len(w)), x.reshape(-1, len(w)), dy.reshape(-1, w.shape[1]), strict=True)
    for dx_row, x_row, dy_row in rows:
        for d in range(w.shape[0]):
            for k in range(w.shape[1]):
                dx_row[d] += dy_row[k] * w[d, k]
                dw[d, k] += dy_row[k] * x_row[d]
    return [dx, dw]


@backward_matmul.variant
def axes_for_tensordot(x: Tensor, w: Tensor, dy: Tensor) -> list[Tensor]:
    batch = list(range(x.ndim - 1))
    return [torch.tensordot(dy, w, dims=([dy.ndim - 1], [1])), torch.tensordot(x, dy, dims=(batch, batch))]


# two_layer_backward_flops ----------------------------------------------------------------------------------------


def _counted() -> int:
    """The FLOPs that torch's own counter sees in the backward pass alone."""
    x = torch.ones(64, 128)
    w1, w2 = (torch.zeros(128, width, requires_grad=True) for width in (128, 32))
    loss = (x @ w1 @ w2).pow(2).mean()
    with FlopCounterMode(display=False) as counter:
        grads_of(loss, w1, w2)
    return int(counter.get_total_flops())


two_layer_backward_flops = value_exercise(
    "two_layer_backward_flops",
    points=1,
    minutes=4,
    difficulty=2,
    reference=_counted,
    hints=[
        "List the products: which of dW₂, dh₁, dW₁ and dx are needed when x is data?",
        "Three products: two of 2·B·D·K FLOPs for the second layer, one of 2·B·D·D for the first.",
    ],
)
two_layer_backward_flops.right_value(
    "3 * 2**20", "3145728.0", "math.prod([2, 64, 128, 128]) + 2 * (2 * 64 * 128 * 32)", "64 * 128 * (4 * 32 + 2 * 128)"
)
for _value, _sentence in {
    5_767_168: "That includes the forward pass, 2BDK + 2BD². The question is about the backward pass alone.",
    5_242_880: "That is 4BDK + 4BD². x needs no gradient, so one product of the first layer, 2BD², is never computed.",
    2_621_440: "That is 2BDK + 2BD²: the forward pass, or only the gradients of the two weights. The gradient of h₁ is "
    "missing.",
    6_553_600: "That is 5BDK + 5BD². φ' multiplies element by element, which is not a third matrix product.",
    1_048_576: "That is 4BDK, the second layer. The first has a weight, too, with 2BD² FLOPs.",
    4_718_592: "You swapped the layers: the first one, D × D, needs only one product.",
    49_152: "That is for one row. All B = 64 rows take part in the products.",
    7_864_320: "That is three products for each layer, 6BDK + 6BD². One of each is the forward pass, and x needs no "
    "gradient.",
    81_920: "That is 4 FLOPs for each parameter: a single row, and with the gradient of x. There are B = 64 rows.",
    1_572_864: "You count a multiplication and its addition as one. By the usual convention they are two FLOPs.",
}.items():
    two_layer_backward_flops.wrong_value(_value, _sentence)
