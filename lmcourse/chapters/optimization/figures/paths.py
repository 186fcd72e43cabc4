"""Paths down a valley: a contour map with the steps of one method, and three methods side by side."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch.optim import SGD, Adagrad, Adam, Optimizer

from lmcourse.plots import drawn_together
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure, three_digits

Array = NDArray[np.float64]

METHODS: dict[str, Callable[[list[torch.Tensor], float, float], Optimizer]] = {
    "gradient descent": lambda p, rate, beta: SGD(p, rate, foreach=False),
    "heavy ball": lambda p, rate, beta: SGD(p, rate, beta, foreach=False),
    "Nesterov": lambda p, rate, beta: SGD(p, rate, beta, nesterov=beta > 0, foreach=False),
    "AdaGrad": lambda p, rate, beta: Adagrad(p, rate, foreach=False),
    "Adam": lambda p, rate, beta: Adam(p, rate, (beta, 0.999), foreach=False),
}
STEPS = 60
_START = (-2.0, 1.0)
_REACH = 3.0
"""Distance from the bottom to the edges of the map."""


def valley(kappa: float, rotation: float) -> Array:
    """The symmetric matrix with eigenvalues 1 and kappa whose steep direction is turned by `rotation` degrees.

    At 0° the steep direction is the vertical axis.
    """
    turn = _turn(rotation)
    return np.asarray(turn @ np.diag([1.0, kappa]) @ turn.T)


def _turn(rotation: float) -> Array:
    angle = math.radians(rotation)
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def walk(method: str, rate: float, momentum: float, kappa: float, rotation: float, steps: int = STEPS) -> Array:
    """The points of a path with its start, (steps + 1, 2). Every path starts at the same place of the valley.

    Raises:
        ValueError: there is no such method.
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose from {', '.join(METHODS)}")
    H = torch.as_tensor(valley(kappa, rotation))
    x = torch.tensor(_turn(rotation) @ _START, requires_grad=True)
    points, optimizer = [x.detach().numpy().copy()], METHODS[method]([x], rate, momentum)
    for _ in range(steps):
        x.grad = H @ x.detach()
        if x.abs().max() < 1e6:  # points farther away are outside the map, and their numbers would overflow
            optimizer.step()
        points.append(x.detach().numpy().copy())
    return np.array(points)


def value(points: Array, kappa: float, rotation: float) -> Array:
    """½ xᵀHx at each point."""
    return np.asarray(0.5 * np.einsum("ki,ij,kj->k", points, valley(kappa, rotation), points))


@drawn_together("method", "kappa", "rotation")
@drawn_together("method", "rate", "kappa")
def descent_path(
    method: str = "gradient descent",
    rate: float = 0.18,
    momentum: float = 0.9,
    kappa: float = 10.0,
    rotation: float = 0.0,
) -> Figure:
    """60 steps of a method in a valley with curvatures 1 and kappa, on its map.

    Args:
        method: one of METHODS.
        rate: γ.
        momentum: β of the heavy ball and of Nesterov, β₁ of Adam; the others have none.
        kappa: the curvature of the steep direction; the flat one has 1.
        rotation: the rotation of the whole valley, in degrees.

    Raises:
        ValueError: there is no such method.
    """
    points = walk(method, rate, momentum, kappa, rotation)
    heights = value(points, kappa, rotation)
    end = _verdict(heights)
    figure = new_figure(8.0, 4.6)
    settings = f"rate {rate:.3g}" + (f", β {momentum:.2g}" if method in ("heavy ball", "Nesterov", "Adam") else "")
    axes = new_axes(figure, f"{method[0].upper()}{method[1:]}, {settings}: {end}", "x₁", "x₂")
    _draw_map(axes, kappa, rotation)
    _draw_path(axes, points, PALETTE["vermilion"])
    caption = (
        f"Lines of equal height of ½xᵀHx with curvatures 1 and {three_digits(kappa)}; the bottom is the dot, the "
        f"path starts at the ring. Times the largest curvature, the rate is {three_digits(rate * kappa)}."
    )
    alt = f"Path of {method} on a contour map, {settings}, curvatures 1 and {three_digits(kappa)}: {end}"
    return describe(figure, caption=caption, alt=alt)


def zig_zag(rate: float = 0.012, momentum: float = 0.8, kappa: float = 100.0) -> Figure:
    """Gradient descent, the heavy ball and Nesterov with the same rate, side by side."""
    figure = new_figure(8.0, 4.4)
    grid = figure.add_gridspec(3, 1)
    told = []
    for row, method in enumerate(list(METHODS)[:3]):
        points = walk(method, rate, momentum, kappa, 0.0)
        lost, along = np.abs(points[-1]).max() > _REACH, points[-1][0] + 0.0
        end = "explodes" if lost else f"at x₁ = {along:.2f} after {STEPS} steps"
        axes = new_axes(figure, f"{method[0].upper()}{method[1:]}: {end}", "x₁" if row == 2 else "", "x₂")
        axes.set_subplotspec(grid[row])
        _draw_map(axes, kappa, 0.0, 1.4, 7)
        _draw_path(axes, points, (PALETTE["vermilion"], PALETTE["blue"], PALETTE["green"])[row])
        told.append(f"{method}: {end}")
    caption = (
        f"{STEPS} steps with the same rate {rate:.3g} and β = {momentum:.2g}, curvatures 1 and {three_digits(kappa)}. "
        "Memory adds up what points along the valley. Across it, gradients change sign, and a ball may swing longer."
    )
    return describe(figure, caption=caption, alt=f"Three paths down the same valley. {'; '.join(told)}")


def _verdict(heights: Array) -> str:
    if not heights[-1] < 1e3 * heights[0]:
        return "explodes"
    for k, height in enumerate(heights):
        if height < 1e-3 * heights[0] and (heights[k:] < 1e-3 * heights[0]).all():
            return f"down to a thousandth after {k} steps"
    return f"after {STEPS} steps {100 * heights[-1] / heights[0]:.2g} % of the height is left"


def _draw_map(axes: Axes, kappa: float, rotation: float, tall: float = _REACH, lines: int = 14) -> None:
    x, y = np.meshgrid(np.linspace(-_REACH, _REACH, 121), np.linspace(-tall, tall, 121))
    height = value(np.stack([x.ravel(), y.ravel()], axis=1), kappa, rotation).reshape(x.shape)
    levels = height.max() * np.linspace(0.02, 1, lines) ** 2
    axes.contour(x, y, height, levels=levels, colors=PALETTE["sky"], linewidths=0.8)
    axes.plot([0], [0], "o", color="black", markersize=6)
    axes.set_xlim(-_REACH, _REACH)
    axes.set_ylim(-tall, tall)


def _draw_path(axes: Axes, points: Array, colour: str) -> None:
    axes.plot(points[:, 0], points[:, 1], ".-", color=colour, linewidth=1.4, markersize=5, clip_on=True)
    axes.plot(*points[0], "o", color=colour, markerfacecolor="white", markersize=9)


def adam_steps(beta1: float = 0.9, beta2: float = 0.999, corrected: bool = False) -> Figure:
    """Length of Adam's first 50 steps with a constant gradient, in units of the rate.

    Raises:
        ValueError: a β is negative, or not below 1.
    """
    if not (0 <= beta1 < 1 and 0 <= beta2 < 1):
        raise ValueError(f"beta1 and beta2 must be at least 0 and below 1, not {beta1:g} and {beta2:g}")
    k = torch.arange(1, 51, dtype=torch.float64)
    steps = (1 - beta1**k) / (1 - beta2**k).sqrt()
    figure = new_figure(8.0, 3.4)
    largest = int(steps.argmax())
    first, peak = steps[0].item(), steps[largest].item()
    title = f"Without correction: first {first:.3g} γ, longest {peak:.3g} γ at step {largest + 1}"
    axes = new_axes(figure, "With correction every step is 1 γ" if corrected else title, "step", "length (in γ)")
    axes.plot(k, steps, color=PALETTE["vermilion"], linewidth=1 if corrected else 2.2, label="as the means are")
    axes.plot(k, torch.ones(50), color=PALETTE["blue"], linewidth=2.2 if corrected else 1, label="corrected")
    axes.set_ylim(0, max(1.2, 1.1 * peak))
    axes.legend(frameon=False, fontsize=10)
    caption = (
        f"The gradient is the same in all steps, and the step is m / √s, each as it is or corrected. β₁ = {beta1:g}, "
        f"β₂ = {beta2:g}."
    )
    return describe(
        figure, caption=caption, alt=f"Length of Adam's first 50 steps, betas {beta1:g} and {beta2:g}. {title}"
    )
