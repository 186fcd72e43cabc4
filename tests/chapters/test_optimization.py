"""Notebook 04: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lmcourse.chapters.optimization import exercises, figures
from lmcourse.chapters.optimization.exercises.scale import SIX, squared_lengths
from lmcourse.chapters.optimization.figures.bounds import measured_and_bound, regression
from lmcourse.chapters.optimization.figures.paths import valley, walk
from lmcourse.chapters.optimization.figures.schedules import BYTES
from tests.plots.figures import check_figure, said


def bowl(d: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    root, b, start = (torch.randn(*shape, generator=source, dtype=torch.float64) for shape in ((d, d), (d,), (d,)))
    return root @ root.T, b, start


def test_the_path_matches_torchs_sgd_on_the_bowl() -> None:
    H, b, start = bowl(3)
    found = exercises.descend.reference(H, b, start, 0.05, 20)
    x = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.05)
    for row in found:
        torch.testing.assert_close(row, x.detach(), rtol=1e-10, atol=1e-12)
        optimizer.zero_grad()
        (0.5 * x @ H @ x - b @ x).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@pytest.mark.parametrize("shape", [(5, 3), (2, 4), (1, 3)])
def test_largest_curvature_bounds_all_directions_and_is_reached(shape: tuple[int, int]) -> None:
    X = torch.randn(*shape, dtype=torch.float64)
    L = exercises.smoothness.reference(X)
    directions = torch.nn.functional.normalize(torch.randn(20_000, shape[1], dtype=torch.float64), dim=1)
    curvatures = (directions @ X.T).square().mean(dim=1)
    assert 0.9 * L < curvatures.max().item() <= L * (1 + 1e-12)


@pytest.mark.parametrize("replacement", [True, False])
def test_the_noise_matches_sampled_batches(replacement: bool) -> None:
    gradients = torch.randn(5, 2, dtype=torch.float64)
    source = np.random.default_rng(0)
    drawn = [source.choice(5, 3, replace=replacement) for _ in range(20_000)]
    measured = (gradients[np.array(drawn)].mean(dim=1) - gradients.mean(dim=0)).square().sum(dim=1).mean().item()
    assert exercises.gradient_noise.reference(gradients, 3, replacement) == pytest.approx(measured, rel=0.05)


def test_the_noise_scale_matches_all_batches_of_six_gradients() -> None:
    rows = torch.tensor(SIX, dtype=torch.float64)
    full = rows.mean(dim=0)
    squared, noise = full.square().sum().item(), (rows - full).square().sum(dim=1).mean().item()
    small, large = squared_lengths(2), squared_lengths(3)
    found = exercises.noise_scale.reference(small, large, 2, 3)
    assert found == pytest.approx((squared, noise, noise / squared))


def test_the_weights_of_a_mean_with_one_beta_sum_to_the_papers_correction() -> None:
    for steps in (1, 2, 7):
        found = exercises.mean_weights.reference([0.9] * steps)
        raw = [0.1 * 0.9**k for k in reversed(range(steps))]
        assert found == pytest.approx([weight / (1 - 0.9**steps) for weight in raw])


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


def test_no_other_rate_and_momentum_are_faster() -> None:
    mu, L = 1.0, 100.0
    rate, beta, factor = exercises.best_momentum.reference(mu, L)
    assert factor == pytest.approx(math.sqrt(beta))
    assert max(radius(rate, beta, mu), radius(rate, beta, L)) == pytest.approx(factor, abs=1e-6)
    for other_rate in rate * np.linspace(0.5, 1.5, 41):
        for other_beta in np.linspace(0, 0.99, 67):
            assert max(radius(other_rate, other_beta, mu), radius(other_rate, other_beta, L)) > factor - 1e-6


def test_the_gradient_of_the_classifier_matches_differences() -> None:
    W, X, y = torch.randn(3, 2).double(), torch.randn(4, 2).double(), torch.tensor([2, 0, 1, 1])
    gradient = exercises.softmax_gradient.reference(W, X, y)
    for place in range(6):
        moved = torch.zeros(6, dtype=torch.float64)
        moved[place] = 1e-6
        up, down = (
            torch.nn.functional.cross_entropy(X @ (W + sign * moved.view(3, 2)).T, y).item() for sign in (1, -1)
        )
        assert gradient.flatten()[place].item() == pytest.approx((up - down) / 2e-6, abs=1e-8)


TORCHS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "gradient descent": partial(torch.optim.SGD, lr=0.01),
    "heavy ball": partial(torch.optim.SGD, lr=0.01, momentum=0.7),
    "Nesterov": partial(torch.optim.SGD, lr=0.01, momentum=0.7, nesterov=True),
    "AdaGrad": partial(torch.optim.Adagrad, lr=0.01),
    "Adam": partial(torch.optim.Adam, lr=0.01, betas=(0.7, 0.999)),
}


def test_paths_match_torchs_optimizers() -> None:
    H = torch.as_tensor(valley(50.0, 25.0))
    assert torch.linalg.eigvalsh(H).tolist() == pytest.approx([1.0, 50.0])
    for method, make in TORCHS.items():
        path = walk(method, 0.01, 0.7, 50.0, 25.0)
        x = torch.tensor(path[0], requires_grad=True)
        optimizer = make([x])
        for point in path:
            np.testing.assert_allclose(point, x.detach().numpy(), rtol=1e-9, atol=1e-11)
            x.grad = H @ x.detach()
            optimizer.step()


def test_the_bound_holds_where_it_is_proved_and_fails_near_the_edge() -> None:
    for seed in range(3):
        for scale in (0.1, 0.5, 1.0):
            measured, bound = measured_and_bound(scale, seed)
            assert (measured <= bound * (1 + 1e-9)).all()
        measured, bound = measured_and_bound(1.9, seed)
        repaired = bound / 2 / (1 - 1.9 / 2)
        assert (measured > bound).any()
        assert (measured <= repaired).all()
    X, _, L = regression(1)
    assert np.linalg.eigvalsh(X.T @ X / len(X)).max() == pytest.approx(L)


def test_the_bytes_match_torchs_state() -> None:
    makes: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "SGD": partial(torch.optim.SGD, lr=0.1),
        "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        "AdaGrad": torch.optim.Adagrad,
        "Adam, AdamW": torch.optim.AdamW,
    }
    for name, make in makes.items():
        p = torch.zeros(1000, requires_grad=True)
        optimizer = make([p])
        p.grad = torch.ones(1000)
        optimizer.step()
        state = [each for each in optimizer.state[p].values() if isinstance(each, torch.Tensor) and each.numel() > 1]
        assert sum(each.nbytes for each in state) == 1000 * BYTES[name]


def test_references_step_as_torchs_optimizers() -> None:
    kinds: list[tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]]] = [
        (exercises.Momentum, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
        (exercises.AdaGrad, torch.optim.Adagrad, {"lr": 0.1}),
        (exercises.Adam, torch.optim.Adam, {"lr": 0.1, "betas": (0.8, 0.95)}),
        (exercises.AdamW, torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.3}),
    ]
    gradients = torch.randn(12, 4, dtype=torch.float64)
    for exercise, theirs, settings in kinds:
        ends = []
        for make in (exercise.reference, theirs):
            p = torch.ones(4, dtype=torch.float64, requires_grad=True)
            optimizer = make([p], **settings)
            for gradient in gradients:
                p.grad = gradient.clone()
                optimizer.step()
            ends.append(p.detach())
        torch.testing.assert_close(*ends, rtol=1e-11, atol=1e-13)


def test_figures_of_runs_show_the_measured_numbers() -> None:
    curvatures = {0.5: torch.linspace(1, 4, 21).repeat(2, 1).T, 0.1: torch.linspace(1, 6, 21)[:, None]}
    edges = "rate 0.5: ends at 2/γ = 4; rate 0.1: ends away from 2/γ = 20"
    assert edges in said(figures.sharpness(curvatures, 100))
    noise = torch.logspace(0, -2, 500)[:, None] / torch.tensor([1.0, 2.0])
    assert "divides the floor by 2.0" in said(figures.noise_floor(noise, (0.2, 0.1)))
    runs = {"plain": np.linspace(3, 1, 800).tolist(), "late": (np.linspace(3, 1, 800) ** 2 / 2 + 0.3).tolist()}
    assert said(figures.crossing_losses(runs)).endswith("Ahead half-way: plain. In the end: late")
    check_figure(figures.optimizer_bytes())


def test_the_certificate_holds_up_to_the_largest_rate() -> None:
    for seed in range(3):
        source = torch.Generator().manual_seed(seed)
        X, y = torch.randn(9, 3, generator=source).double(), torch.randn(9, generator=source).double()
        for scale, steps in ((0.1, 30), (1.0, 0), (1.0, 30)):
            rate = scale / exercises.smoothness.reference(X)
            average, bound = exercises.descent_certificate.reference(X, y, rate, steps)
            assert 0 < average <= bound
