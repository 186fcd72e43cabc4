"""Notebook 04: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lmcourse.chapters.optimization import exercises
from lmcourse.chapters.optimization.exercises.scale import SIX, squared_lengths
from lmcourse.chapters.optimization.figures.bounds import measured_and_bound, regression
from lmcourse.chapters.optimization.figures.paths import valley, walk
from lmcourse.chapters.optimization.race import (
    MORE,
    TOUCHED,
    Race,
    inspect_entry,
    measure_entry,
    run_entry,
)
from lmcourse.exercises.open_task import Unfit


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


def test_every_optimizer_has_the_defaults_of_torch_but_no_decay() -> None:
    p = [torch.zeros(1, requires_grad=True)]
    for exercise, theirs in ((exercises.AdaGrad, torch.optim.Adagrad(p)), (exercises.AdamW, torch.optim.AdamW(p))):
        ours = exercise.reference(p).param_groups[0]
        names = {"lr", "betas", "eps"} & theirs.param_groups[0].keys()
        assert {name: ours[name] for name in names} == {name: theirs.param_groups[0][name] for name in names}
        assert ours["weight_decay"] == 0


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


def test_paths_follow_the_rules_of_the_notebook() -> None:
    H, rate, beta = valley(50.0, 25.0), 0.01, 0.7
    assert np.linalg.eigvalsh(H).tolist() == pytest.approx([1.0, 50.0])
    ball, places = (walk(method, rate, beta, 50.0, 25.0) for method in ("heavy ball", "Nesterov"))
    for before, x, after in zip(ball, ball[1:], ball[2:], strict=False):
        np.testing.assert_allclose(after, x - rate * H @ x + beta * (x - before), atol=1e-12)
    settled = places - rate * places @ H  # Nesterov's x from its y
    for before, x, place in zip(settled, settled[1:], places[2:], strict=False):
        np.testing.assert_allclose(place, x + beta * (x - before), atol=1e-12)


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


def test_references_step_as_torchs_optimizers() -> None:
    kinds: list[tuple[Any, Callable[..., torch.optim.Optimizer], dict[str, Any]]] = [
        (exercises.Descent, torch.optim.SGD, {"lr": 0.1}),
        (exercises.Momentum, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
        (exercises.AdaGrad, torch.optim.Adagrad, {"lr": 0.1}),
        (exercises.AdamW, torch.optim.Adam, {"lr": 0.1, "betas": (0.8, 0.95)}),
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


def test_an_entry_that_runs_the_model_or_trains_first_is_unfit() -> None:
    def greedy(model: Any) -> Any:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(lambda *_: print(model(torch.zeros(1, 12, dtype=torch.long)).shape))
        return optimizer, None

    def trained(model: Any) -> Any:
        torch.nn.init.zeros_(model.head.weight)
        return torch.optim.SGD(model.parameters(), lr=0.1), None

    for entry, sentence in ((greedy, MORE), (trained, TOUCHED)):
        with pytest.raises(Unfit, match=re.escape(sentence)):
            inspect_entry(entry)


def test_weights_of_another_seed_are_of_no_use() -> None:
    weights: list[Tensor] = []

    def learn(model: Any) -> Any:
        weights[:] = model.parameters()
        return torch.optim.AdamW(model.parameters(), lr=0.02)

    def copied(model: Any) -> Any:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        optimizer.register_step_post_hook(lambda *_: torch._foreach_copy_([p.data for p in model.parameters()], known))
        return optimizer

    learned = run_entry(learn, 0, 150).held_out
    known = [weight.detach().clone() for weight in weights]
    assert run_entry(copied, 1, 2).held_out > learned + 2


def test_a_lost_entry_has_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    race = Race()
    mean = race.enter("too fast", lambda model: torch.optim.SGD(model.parameters(), lr=math.nan), steps=5)
    assert math.isnan(mean)
    assert "the loss is not finite at step" in capsys.readouterr().out
    with pytest.raises(Unfit, match="no longer a finite number"):
        measure_entry(lambda model: torch.optim.SGD(model.parameters(), lr=math.nan), [0])


def test_the_certificate_holds_up_to_the_largest_rate() -> None:
    for seed in range(3):
        source = torch.Generator().manual_seed(seed)
        X, y = torch.randn(9, 3, generator=source).double(), torch.randn(9, generator=source).double()
        for scale, steps in ((0.1, 30), (1.0, 0), (1.0, 30)):
            rate = scale / exercises.smoothness.reference(X)
            average, bound = exercises.descent_certificate.reference(X, y, rate, steps)
            assert 0 < average <= bound
