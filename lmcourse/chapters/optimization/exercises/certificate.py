"""The exercise that tests the theorem on gradient descent with data."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises.scripts import SECONDS, tensor
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _certificate(X: Tensor, y: Tensor, rate: float, steps: int) -> tuple[float, float]:
    """Compute in the basis of the right singular vectors: each coordinate of the gradient shrinks by 1 − γλ a step."""
    _, singular, directions = torch.linalg.svd(X.double(), full_matrices=False)
    curvature = singular**2 / len(X)
    if rate > (1 + 1e-9) / curvature[0]:
        raise ValueError(f"a rate of {rate} is above 1/L = {1 / curvature[0]:.4g}")
    first = directions @ X.double().T @ y.double() / len(X)
    powers = (1 - rate * curvature) ** (2 * torch.arange(steps + 1)[:, None])
    average = (powers * first**2).sum(dim=1).mean()
    curved = curvature > 1e-12 * curvature[0]
    above_the_bottom = (first[curved] ** 2 / curvature[curved]).sum() / 2
    return average.item(), (2 * above_the_bottom / (rate * (steps + 1))).item()


X, Y = tensor([1.0, 0.0], [0.0, 2.0], [1.0, 1.0]), tensor(1.0, 2.0, 0.0)
FLAT, FLAT_Y = tensor([1.0, 1.0], [2.0, 2.0], [0.0, 0.001]), tensor(1.0, 1.0, 1.0)
TWINS, TWINS_Y = tensor([1.0, 1.0], [2.0, 2.0], [0.0, 0.0]), tensor(1.0, 1.0, 1.0)


def _largest_rate(X: Tensor) -> float:
    return float(len(X) / torch.linalg.svdvals(X)[0] ** 2)


def _hidden(random: Random) -> list[Case]:
    tall, told = normal64(Random(7), 8, 3), normal64(Random(8), 8)
    wide, wide_y = normal64(Random(9), 2, 4), normal64(Random(10), 2)
    cases = [
        case("a rate of exactly 1/L", tensor([2.0, 0.0], [0.0, 1.0]), tensor(1.0, 3.0), 0.5, 4),
        case("a rate of exactly 1/L", tall, told, _largest_rate(tall), 30),
        case("a rate above 1/L", tall, told, 1.0001 * _largest_rate(tall), 3),
        case("a rate above 1/L", tensor([2.0, 0.0], [0.0, 1.0]), tensor(1.0, 3.0), 0.75, 0),
        case("columns that repeat", TWINS, tensor(1.0, -1.0, 2.0), 0.3, 6),
        case("fewer rows than columns", wide, wide_y, 0.5 * _largest_rate(wide), 5),
        case("targets of zero", tall, torch.zeros(8, dtype=torch.float64), 0.1, 3),
        case("many steps", tall, told, 0.1, 500),
        case("no step", tall, told, 0.1, 0),
        case("a direction nearly flat", FLAT, FLAT_Y, 0.2, 3),
    ]
    for n, d in ((4, 1), (6, 2), (9, 4)):
        data = normal64(random, n, d)
        rate = random.uniform(0.2, 0.9) * _largest_rate(data)
        cases.append(case("other data", data, normal64(random, n), rate, random.randint(1, 20)))
    return cases


descent_certificate = Exercise(
    "descent_certificate",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_certificate,
    cases=[
        edge(case("K = 0, no step", X, Y, 0.2, 0)),
        case("K = 1", X, Y, 0.2, 1),
        case("K = 9", X, Y, 0.2, 9),
        case("two equal columns, a rate of 1/L", TWINS, TWINS_Y, 0.3, 3),
        case("a rate of exactly 1/L", tensor([2.0, 0.0], [0.0, 1.0]), tensor(1.0, 2.0), 0.5, 3),
        case("a direction nearly flat", FLAT, FLAT_Y, 0.25, 4),
        case("a rate above 1/L", X, Y, 0.6, 3),
        case("a rate a thousandth above 1/L", X, Y, 1.001 * _largest_rate(X), 3),
    ],
    hidden_cases=_hidden,
    hints=[
        "The gradient at w is Xᵀ(Xw − y)/n, the loss ‖Xw − y‖²/2n. The gradients count from k = 0, before the first "
        "step, to k = K: K + 1 of them.",
        "f* is the loss of the best w. torch.linalg.pinv(X) @ y is one, even if two columns are equal.",
        "L is what `smoothness` gave. Compare rate · L with 1 + 1e-9, so that a rate of 1/L is not rejected because of "
        "rounding.",
    ],
    tolerance=Tolerance(1e-7, 1e-12),
    seconds=SECONDS,
    uses=["smoothness"],
)


for _slack in (">= 1 + 1e-09", "> 1 + 2e-09", "> 1 + 5e-10"):
    descent_certificate.equivalent_mutant(
        f"if rate * smoothness(X) > 1 + 1e-09: → if rate * smoothness(X) {_slack}:",
        "The task leaves the slack for rounding open: 1/L passes, and the next rate asked is 0.01 % above.",
    )
descent_certificate.equivalent_mutant(
    "gradient = X.T @ (X @ w - y) / len(X) → gradient = X.T @ (X @ w + y) / len(X)",
    "With −y for y the path from 0 is mirrored, and squared lengths are the same.",
)
descent_certificate.equivalent_mutant(
    "drop = (y.square().sum() - (X @ best - y).square().sum()) / (2 * len(X)) → "
    "drop = (y.square().sum() - (y - X @ best).square().sum()) / (2 * len(X))",
    "A square does not see the sign.",
)


@descent_certificate.variant
def in_a_loop(X: Tensor, y: Tensor, rate: float, steps: int) -> tuple[float, float]:
    n, count = len(X), steps + 1
    L = torch.linalg.svdvals(X)[0].item() ** 2 / n
    if rate * L > 1 + 1e-9:
        raise ValueError("the rate is above 1/L")
    w, squares = torch.zeros_like(X[0]), []
    for _ in range(count):
        gradient = X.T @ (X @ w - y) / n
        squares.append(gradient.square().sum().item())
        w = w - rate * gradient
    best = torch.linalg.pinv(X) @ y
    drop = (y.square().mean() - (X @ best - y).square().mean()).item() / 2
    return sum(squares) / len(squares), 2 * drop / (rate * count)


descent_certificate.slips(
    in_a_loop,
    {
        "len(squares) → max(steps, 1) ;; rate * count → rate * max(steps, 1)": "You divide by K. There are K + 1 "
        "gradients, from k = 0 to K.",
        "range(count) → range(max(steps, 1))": "You stop one gradient early. The last one, k = K, belongs to the "
        "average.",
        "steps + 1 → max(steps, 1)": "You take K gradients and divide by K. There are K + 1, from k = 0 to k = K, in "
        "the average and in the bound.",
        "gradient.square().sum() → gradient.norm()": "You average lengths. The theorem is about *squared* lengths.",
        "sum(squares) / len(squares) → squares[-1]": "You take the last gradient, which is the smallest. The theorem "
        "bounds the average of all.",
        " - (X @ best - y).square().mean() → ": "You set f* to 0. With noisy data no w brings the loss to 0.",
        "2 * drop → drop": "The bound lacks a factor of 2: a step is only guaranteed to lower f by γ/2 · ‖∇f‖².",
        "rate * count → rate * max(steps, 1)": "Your bound divides by γK. The average is over K + 1 gradients, and so "
        "is the bound.",
        "rate * count → count / L": "You put L where 1/γ belongs: that is the bound for γ = 1/L. The rate is given.",
        "(X @ w - y) / n → (X @ w - y) ;; y.square().mean() → y.square().sum() ;; (X @ best - y).square().mean() → (X "
        "@ best - y).square().sum()": "Your loss and its gradient lack the factor 1/n.",
        "y.square().mean() → y.square().sum() ;; (X @ best - y).square().mean() → (X "
        "@ best - y).square().sum()": "Your loss is ½‖Xw − y‖². The task divides it by n: it is a mean over the "
        "examples.",
        "** 2 / n → ** 2": "You use ‖X‖² as L. The loss is a mean over n examples, so L is ‖X‖²/n.",
        "rate * L > 1 + 1e-9 → False": "You return numbers for a rate above 1/L. The theorem does not cover it: raise "
        "ValueError.",
        "torch.linalg.pinv(X) @ y → w + rate * gradient": "You use the loss at w_K as f*. Descent has not arrived at "
        "the bottom there: solve for a best w.",
        "torch.linalg.pinv(X) @ y → w": "You use the loss after your last step as f*. Descent is not at the bottom "
        "yet: solve for a best w.",
        "best = torch.linalg.pinv(X) @ y → best = w\n    for _ in range(1000): best = best - rate * X.T @ (X @ best - "
        "y) / n": "You use the loss after 1,000 more steps as f*. In a flat direction, descent is still far from it: "
        "solve for a best w.",
        "torch.linalg.pinv(X) → torch.linalg.inv(X.T @ X) @ X.T": "If columns of X are equal, XᵀX has no inverse. "
        "torch.linalg.pinv(X) @ y is a best w there, too.",
        "torch.linalg.pinv(X) @ y → torch.linalg.solve(X.T @ X, X.T @ y)": "torch.linalg.solve needs an invertible "
        "matrix. If columns of X are equal, XᵀX is not invertible. Use torch.linalg.pinv.",
        "rate * L > 1 + 1e-9 → rate * L >= 1 - 1e-12 ;; the rate is above 1/L → a rate of 1/L": "You reject γ = 1/L. "
        "The theorem covers it.",
        "1 + 1e-9 → 1.01": "You accept rates up to a percent above 1/L. Allow only for rounding, say a part in 10⁹.",
    },
)


@descent_certificate.variant
def by_autograd(X: Tensor, y: Tensor, rate: float, steps: int) -> tuple[float, float]:
    if rate * torch.linalg.svdvals(X)[0] ** 2 > len(X) * (1 + 1e-9):
        raise ValueError("the rate is above 1/L")
    w, squares, losses = torch.zeros(X.shape[1], dtype=X.dtype), [], []
    for _ in range(steps + 1):
        w = w.detach().requires_grad_()
        losses.append(0.5 * (X @ w - y).square().mean())
        (gradient,) = torch.autograd.grad(losses[-1], w)
        squares.append(gradient.square().sum().item())
        w = w - rate * gradient
    left = (X @ torch.linalg.pinv(X) @ y - y).square().mean() / 2
    return sum(squares) / len(squares), 2 * float(losses[0] - left) / rate / len(squares)
