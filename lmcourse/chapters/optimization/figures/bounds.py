"""Bounds by convexity and smoothness: a chord and a parabola above, and the theorem against measured gradients."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

Array = NDArray[np.float64]


_FAR = np.linspace(-200, 200, 16_001)
"""Points so far away that the parabola and the function differ in curvature: L for the parabola, ¼ for the function."""


def _wave(x: Array | float) -> Array:
    """A function that is smooth with L = 1, and not convex near 3: x²/8 − cos x · 3/4."""
    return np.asarray(np.square(x) / 8 - 0.75 * np.cos(x))


def _slope(x: float) -> float:
    return x / 4 + 0.75 * math.sin(x)


def chord_and_parabola(at: float = -2.5, L: float = 1.0, step: float = 1.0) -> Figure:
    """A function, the parabola of curvature L that touches it at a point, and one step of descent of `step`/L.

    Args:
        at: where the parabola touches.
        L: the parabola's curvature. The function is smooth with 1, so from L = 1 on the parabola is above it.
        step: the learning rate times L.

    Raises:
        ValueError: L is not positive.
    """
    if L <= 0:
        raise ValueError(f"the curvature L must be above 0, not {L:g}")
    x = np.linspace(-5, 5, 401)
    slope, height = _slope(at), float(_wave(at))

    def parabola(x: Array) -> Array:
        return height + slope * (x - at) + L / 2 * (x - at) ** 2

    above_here, above = (bool((parabola(part) >= _wave(part) - 1e-9).all()) for part in (x, _FAR))
    new = at - step / L * slope
    won, promised = height - float(_wave(new)), step / L * (1 - step / 2) * slope**2 + 0.0
    figure = new_figure(8.0, 4.2)
    if above:
        where = "above the function everywhere"
    else:
        where = "above the function here, below it far out" if above_here else "not above the function everywhere"
    axes = new_axes(figure, f"Parabola {where}; the step wins {won:.3g}", "x", "f(x)")
    axes.plot(x, _wave(x), color="black", linewidth=2.4, label="f, smooth with L = 1")
    axes.plot(x, parabola(x), color=PALETTE["vermilion"], linewidth=1.8, label=f"parabola of curvature {L:.2g}")
    ends = np.array([-5.0, -2.0])
    axes.plot(ends, _wave(ends), "--", color=GREY, label="a chord below f: not convex")
    axes.plot([at, new], [height, float(_wave(new))], "o", color=PALETTE["blue"], markersize=8)
    axes.annotate("", (new, float(_wave(new))), (at, height), arrowprops={"arrowstyle": "->", "color": PALETTE["blue"]})
    axes.set_ylim(-2, 9)
    axes.set_xlim(-5, 5)
    axes.legend(frameon=False, fontsize=9.5, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
    caption = (
        f"One step of {step:.2g}/L from x = {at:g} to {new:.3g} wins {won:.3g}. A parabola that lies above promises "
        f"γ(1 − γL/2)·f′² = {promised:.3g}"
        + ("; the function keeps it." if above else ", but this one does not lie above.")
    )
    alt = (
        f"Curve with a parabola of curvature {L:.2g} that touches it at {at:g}: {where}. A step to {new:.3g} wins "
        f"{won:.3g}, promised were {promised:.3g}"
    )
    return describe(figure, caption=caption, alt=alt)


def regression(seed: int, n: int = 50, d: int = 4) -> tuple[Array, Array, float]:
    """Random data with noisy targets: X (n, d), y (n), and L of ‖Xw − y‖²/2n."""
    source = np.random.default_rng(seed)
    X = source.standard_normal((n, d)) * np.array([2.0, 1.0, 0.5, 0.2])[:d]
    y = X @ np.ones(d) + source.standard_normal(n)
    return X, y, float(np.linalg.norm(X, 2) ** 2 / n)


def measured_and_bound(scale: float, seed: int = 0, steps: int = 100) -> tuple[Array, Array]:
    """For each K below `steps`: the average of ‖∇f‖² over k = 0 … K, and 2(f₀ − f*)/(γ(K + 1)), for γ = scale/L."""
    X, y, L = regression(seed)
    rate, n = scale / L, len(y)
    w, squares = np.zeros(X.shape[1]), []
    for _ in range(steps):
        gradient = X.T @ (X @ w - y) / n
        squares.append(gradient @ gradient)
        w = w - rate * gradient
    left = y - X @ np.linalg.lstsq(X, y)[0]
    drop = (y @ y - left @ left) / (2 * n)
    count = np.arange(1, steps + 1)
    return np.cumsum(squares) / count, 2 * drop / (rate * count)


@stops(scale=(0.1, 0.4, 0.7, 1.0, 1.3, 1.6, 1.9, 1.95))
def certificate(scale: float = 1.0, seed: int = 0) -> Figure:
    """The measured average of ‖∇f‖² and the theorem's bound against K, for a rate of scale/L.

    Raises:
        ValueError: the rate is not positive, or so large that descent diverges.
    """
    if not 0 < scale < 2:
        raise ValueError(f"scale, the learning rate in units of 1/L, must be between 0 and 2, not {scale:g}")
    measured, bound = measured_and_bound(scale, seed)
    broken = int((measured > bound * (1 + 1e-9)).sum())
    verdict = "measured is below the bound for every K" if not broken else f"the bound fails for {broken} of 100 K"
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Rate {scale:.3g}/L: {verdict}", "K", "mean of ‖∇f‖², k = 0 … K")
    k = np.arange(1, len(measured) + 1)
    axes.loglog(k, bound, "--", color=PALETTE["vermilion"], linewidth=2, label="bound 2(f₀ − f*)/γ(K + 1)")
    axes.loglog(k, measured, color=PALETTE["blue"], linewidth=2, label="measured")
    axes.set_xlabel("K + 1")
    axes.legend(frameon=False, fontsize=10)
    caption = (
        "Linear regression, 50 random examples. The theorem asks for a rate of at most 1/L. Up to 2/L descent still "
        "works, but each step is sure of less, and the bound needs the factor 1/(1 − γL/2) in place of 2."
    )
    return describe(
        figure, caption=caption, alt=f"Average squared gradient and its bound, rate {scale:.3g}/L: {verdict}"
    )
