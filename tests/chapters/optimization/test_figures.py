"""The figures of notebook 04: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.optimization import figures
from lmcourse.chapters.optimization.figures.bounds import measured_and_bound, regression
from lmcourse.chapters.optimization.figures.paths import METHODS, valley, walk
from lmcourse.chapters.optimization.figures.schedules import BYTES, SHAPES
from tests.plots.figures import check_figure

CURVATURES = {0.5: torch.linspace(1, 4, 21).clamp(max=4).repeat(2, 1).T, 0.1: torch.linspace(1, 6, 21)[:, None]}
NOISE = torch.logspace(0, -2, 500)[:, None] / torch.tensor([1.0, 2.0])
RUNS = {"plain": np.linspace(3, 1, 800).tolist(), "late": (np.linspace(3, 1, 800) ** 2 / 2 + 0.3).tolist()}
DRAWINGS: list[Callable[..., Figure]] = [
    figures.descent_path,
    *(partial(figures.descent_path, rate=0.05, kappa=100.0, rotation=30.0, method=method) for method in METHODS),
    partial(figures.descent_path, "Nesterov", 3.0, 0.99, 1000.0, 90.0),
    partial(figures.descent_path, "Adam", 0.001, 0.0, 1.0, 0.0),
    figures.zig_zag,
    partial(figures.zig_zag, 0.05, 0.95, 200.0),
    partial(figures.zig_zag, 0.001, 0.0, 1.0),
    figures.adam_steps,
    partial(figures.adam_steps, 0.99, 0.9, True),
    partial(figures.adam_steps, 0.0, 0.95),
    figures.chord_and_parabola,
    partial(figures.chord_and_parabola, 4.0, 0.2, 2.5),
    partial(figures.chord_and_parabola, -4.0, 2.0, 0.1),
    figures.certificate,
    partial(figures.certificate, 1.95, 2),
    partial(figures.certificate, 0.1, 1),
    partial(figures.sharpness, CURVATURES, 100),
    partial(figures.noise_floor, NOISE, (0.2, 0.1)),
    partial(figures.crossing_losses, RUNS),
    figures.optimizer_bytes,
    *(partial(figures.rate_schedule, warmup=400, floor=0.5, drop=0.6, shape=shape) for shape in SHAPES),
    partial(figures.rate_schedule, "constant, then drop", 0, 0.0, 0.1),
    figures.rate_schedule,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


TORCHS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "gradient descent": partial(torch.optim.SGD, lr=0.01),
    "heavy ball": partial(torch.optim.SGD, lr=0.01, momentum=0.7),
    "Nesterov": partial(torch.optim.SGD, lr=0.01, momentum=0.7, nesterov=True),
    "AdaGrad": partial(torch.optim.Adagrad, lr=0.01),
    "Adam": partial(torch.optim.Adam, lr=0.01, betas=(0.7, 0.999)),
}


@pytest.mark.parametrize("method", METHODS)
def test_paths_are_those_of_torchs_optimizers(method: str) -> None:
    path = walk(method, 0.01, 0.7, 50.0, 25.0)
    H, x = torch.as_tensor(valley(50.0, 25.0)), torch.tensor(path[0], requires_grad=True)
    assert torch.linalg.eigvalsh(H).tolist() == pytest.approx([1.0, 50.0])
    optimizer = TORCHS[method]([x])
    for point in path:
        np.testing.assert_allclose(point, x.detach().numpy(), rtol=1e-9, atol=1e-11)
        x.grad = H @ x.detach()
        optimizer.step()


@pytest.mark.parametrize("method", METHODS)
def test_only_methods_with_a_rate_per_coordinate_notice_a_rotation(method: str) -> None:
    straight, turned = (walk(method, 0.015, 0.5, 100.0, angle) for angle in (0.0, 40.0))
    heights = [np.einsum("ki,ij,kj->k", p, valley(100.0, a), p) for p, a in ((straight, 0.0), (turned, 40.0))]
    assert np.allclose(heights[0], heights[1], rtol=1e-6, atol=1e-9) == (method not in ("AdaGrad", "Adam"))


def test_verdicts_on_both_sides_of_the_edge() -> None:
    assert "thousandth" in plots.alt_text(figures.descent_path(rate=0.19))
    assert "explodes" in plots.alt_text(figures.descent_path(rate=0.22))
    left = float(re.findall(r"([\d.]+) % of the height", plots.alt_text(figures.descent_path(rate=0.001)))[0])
    path = walk("gradient descent", 0.001, 0.0, 10.0, 0.0)
    heights = np.einsum("ki,ij,kj->k", path, valley(10.0, 0.0), path)
    assert left == pytest.approx(100 * heights[-1] / heights[0], rel=0.06)
    with pytest.raises(ValueError, match="there is no method 'Newton'"):
        figures.descent_path("Newton")


@pytest.mark.parametrize(("beta1", "beta2"), [(0.9, 0.999), (0.9, 0.95), (0.5, 0.9)])
def test_the_lengths_are_those_of_adam_without_correction(beta1: float, beta2: float) -> None:
    m = s = 0.0
    steps = []
    for _ in range(50):
        m, s = beta1 * m + (1 - beta1), beta2 * s + (1 - beta2)
        steps.append(m / s**0.5)
    line = figures.adam_steps(beta1, beta2).axes[0].lines[0]
    np.testing.assert_allclose(np.asarray(line.get_ydata()), steps, rtol=1e-9)
    with pytest.raises(ValueError, match="below 1"):
        figures.adam_steps(1.0)


@pytest.mark.parametrize("at", [-4.0, -1.0, 0.5, 3.0])
def test_a_parabola_of_the_largest_curvature_lies_above_and_a_flatter_one_need_not(at: float) -> None:
    curve, parabola = figures.chord_and_parabola(at).axes[0].lines[:2]
    assert (np.asarray(parabola.get_ydata()) >= np.asarray(curve.get_ydata()) - 1e-9).all()
    assert "not above" in plots.alt_text(figures.chord_and_parabola(0.5, 0.2))
    assert "below it far out" in plots.alt_text(figures.chord_and_parabola(-4.0, 0.2))
    ends = figures.chord_and_parabola(at).axes[0].lines[2]
    x, y = (np.asarray(each) for each in ends.get_data())
    middle = np.interp(x.mean(), np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata()))
    assert y.mean() < middle, "the chord shows that the function is not convex"
    with pytest.raises(ValueError, match="positive"):
        figures.chord_and_parabola(at, 0.0)


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
    with pytest.raises(ValueError, match="between 0 and 2/L"):
        figures.certificate(2.0)


def test_the_alt_text_tells_who_reaches_the_edge() -> None:
    assert "rate 0.5: ends at 2/γ = 4; rate 0.1: ends away from 2/γ = 20" in plots.alt_text(
        figures.sharpness(CURVATURES, 100)
    )


def test_floors_are_means_of_the_second_half() -> None:
    figure = figures.noise_floor(NOISE, (0.2, 0.1))
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert [float(np.asarray(line.get_ydata())[0]) for line in dashed] == pytest.approx(NOISE[250:].mean(0).tolist())
    assert "divides the floor by 2.0" in plots.alt_text(figure)


def test_who_is_ahead_half_way_and_in_the_end() -> None:
    assert plots.alt_text(figures.crossing_losses(RUNS)).endswith("Ahead half-way: plain. In the end: late")
    turned = dict(reversed(RUNS.items()))
    assert plots.alt_text(figures.crossing_losses(turned)).endswith("Ahead half-way: plain. In the end: late")
    with pytest.raises(ValueError, match="two runs"):
        figures.crossing_losses({"one": [1.0]})


def test_the_bytes_are_those_of_torchs_state() -> None:
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


def test_schedules_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="there is no schedule 'zigzag'"):
        figures.rate_schedule("zigzag")
    line = figures.rate_schedule("cosine", 0, 0.2).axes[0].lines[0]
    assert np.asarray(line.get_ydata())[[0, 500]].tolist() == pytest.approx([1.0, 0.6])
