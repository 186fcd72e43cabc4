"""The references of notebook 04 against torch, against search and enumeration, and against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lmcourse.chapters.optimization import exercises
from lmcourse.chapters.optimization.exercises.rules import AdaGradRule, AdamRule, MomentumRule
from lmcourse.training.optimizers import rules


def bowl(d: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    root, b, start = (torch.randn(*shape, generator=source, dtype=torch.float64) for shape in ((d, d), (d,), (d,)))
    return root @ root.T, b, start


@pytest.mark.parametrize("d", [1, 3, 6])
def test_the_path_is_that_of_torchs_sgd_on_the_bowl(d: int) -> None:
    H, b, start = bowl(d)
    found = exercises.descend.reference(H, b, start, 0.05, 20)
    x = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.05)
    for row in found:
        torch.testing.assert_close(row, x.detach(), rtol=1e-10, atol=1e-12)
        optimizer.zero_grad()
        (0.5 * x @ H @ x - b @ x).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@pytest.mark.parametrize("shape", [(5, 3), (2, 4), (1, 3)])
def test_no_direction_is_steeper_and_one_comes_near(shape: tuple[int, int]) -> None:
    X = torch.randn(*shape, dtype=torch.float64)
    L = exercises.smoothness.reference(X)
    directions = torch.nn.functional.normalize(torch.randn(20_000, shape[1], dtype=torch.float64), dim=1)
    curvatures = (directions @ X.T).square().mean(dim=1)
    assert 0.9 * L < curvatures.max().item() <= L * (1 + 1e-12)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
def test_the_certificate_holds_up_to_the_largest_rate(scale: float) -> None:
    for seed in range(5):
        source = torch.Generator().manual_seed(seed)
        X, y = torch.randn(9, 3, generator=source).double(), torch.randn(9, generator=source).double()
        rate = scale / exercises.smoothness.reference(X)
        for steps in (0, 1, 30):
            average, bound = exercises.descent_certificate.reference(X, y, rate, steps)
            assert 0 < average <= bound


def test_the_certificate_of_the_specification() -> None:
    X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    y = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)
    found = [exercises.descent_certificate.reference(X, y, 0.2, steps) for steps in (0, 1, 9)]
    rounded = [tuple(float(f"{number:.4g}") for number in pair) for pair in found]
    assert rounded == [(1.889, 5.370), (1.340, 2.685), (0.3256, 0.5370)]
    with pytest.raises(ValueError, match="above 1/L"):
        exercises.descent_certificate.reference(X, y, 0.6, 3)


@pytest.mark.parametrize("replacement", [True, False])
def test_the_noise_is_that_of_drawing(replacement: bool) -> None:
    gradients = torch.randn(5, 2, dtype=torch.float64)
    source = np.random.default_rng(0)
    drawn = [source.choice(5, 3, replace=replacement) for _ in range(20_000)]
    measured = (gradients[np.array(drawn)].mean(dim=1) - gradients.mean(dim=0)).square().sum(dim=1).mean().item()
    assert exercises.gradient_noise.reference(gradients, 3, replacement) == pytest.approx(measured, rel=0.05)


OPTIMIZERS: list[tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = [
    (exercises.Momentum.reference, rules.SGD, {"lr": 0.1, "momentum": 0.9}),
    (exercises.Momentum.reference, rules.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    (exercises.AdaGrad.reference, rules.AdaGrad, {"lr": 0.1}),
    (exercises.Adam.reference, rules.Adam, {"lr": 0.1, "betas": (0.8, 0.95)}),
    (exercises.AdamW.reference, rules.AdamW, {"lr": 0.1, "weight_decay": 0.3}),
    (exercises.Momentum.reference, MomentumRule, {"lr": 0.1, "nesterov": True}),
    (exercises.AdaGrad.reference, AdaGradRule, {"lr": 0.1, "eps": 0.01}),
    (exercises.Adam.reference, AdamRule, {"lr": 0.1}),
    (exercises.AdamW.reference, AdamRule, {"lr": 0.1, "weight_decay": 0.2}),
]


@pytest.mark.parametrize(("reference", "other", "settings"), OPTIMIZERS)
def test_the_references_are_the_courses_own_rules_and_what_wrong_ones_start_from_is_right(
    reference: Callable[..., Any], other: Callable[..., Any], settings: dict[str, Any]
) -> None:
    gradients = torch.randn(12, 4, dtype=torch.float64)
    ends = []
    for make in (reference, other):
        p = torch.ones(4, dtype=torch.float64, requires_grad=True)
        optimizer = make([p], **settings)
        for gradient in gradients:
            p.grad = gradient.clone()
            optimizer.step()
        ends.append(p.detach())
    torch.testing.assert_close(*ends, rtol=1e-11, atol=1e-13)


def test_every_optimizer_has_the_defaults_of_torch() -> None:
    p = [torch.zeros(1, requires_grad=True)]
    for exercise, theirs in (
        (exercises.AdaGrad, torch.optim.Adagrad(p)),
        (exercises.Adam, torch.optim.Adam(p)),
        (exercises.AdamW, torch.optim.AdamW(p)),
    ):
        ours = exercise.reference(p).param_groups[0]
        names = {"lr", "betas", "eps", "weight_decay"} & theirs.param_groups[0].keys()
        assert {name: ours[name] for name in names} == {name: theirs.param_groups[0][name] for name in names}


def radius(rate: float, beta: float, curvature: float) -> float:
    step = np.array([[1 + beta - rate * curvature, -beta], [1.0, 0.0]])
    return float(np.abs(np.linalg.eigvals(step)).max())


@pytest.mark.parametrize(("mu", "L"), [(1.0, 100.0), (0.5, 3.0)])
def test_no_other_rate_and_memory_are_faster(mu: float, L: float) -> None:
    rate, beta, factor = exercises.best_momentum.reference(mu, L)
    assert factor == pytest.approx(math.sqrt(beta))
    assert max(radius(rate, beta, mu), radius(rate, beta, L)) == pytest.approx(factor, abs=1e-6)
    for other_rate in rate * np.linspace(0.5, 1.5, 41):
        for other_beta in np.linspace(0, 0.99, 67):
            assert max(radius(other_rate, other_beta, mu), radius(other_rate, other_beta, L)) > factor - 1e-6


def test_the_gradient_of_the_classifier_is_that_of_differences() -> None:
    W, X, y = torch.randn(3, 2).double(), torch.randn(4, 2).double(), torch.tensor([2, 0, 1, 1])
    gradient = exercises.softmax_gradient.reference(W, X, y)
    for place in range(6):
        moved = torch.zeros(6, dtype=torch.float64)
        moved[place] = 1e-6
        up, down = (
            torch.nn.functional.cross_entropy(X @ (W + sign * moved.view(3, 2)).T, y).item() for sign in (1, -1)
        )
        assert gradient.flatten()[place].item() == pytest.approx((up - down) / 2e-6, abs=1e-8)
